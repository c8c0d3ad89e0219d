package crd

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func specSchema(t *testing.T, path ...string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(DBBenchmarks, &definition); err != nil {
		t.Fatal(err)
	}
	schema := *definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range append([]string{"spec"}, path...) {
		child, ok := schema.Properties[name]
		if !ok {
			t.Fatalf("there is no %s in %s", name, strings.Join(path, "."))
		}
		schema = child
	}
	return schema
}

// TestTemplateGivesNoRights: what a user may set of a runner pod is this and no more.
// Nothing of it gives the pod a right on its node or in the cluster.
func TestTemplateGivesNoRights(t *testing.T) {
	template := specSchema(t, "runner", "template")
	want := []string{"affinity", "annotations", "image", "imagePullPolicy", "imagePullSecrets", "labels", "nodeSelector",
		"priorityClassName", "resources", "tolerations", "topologySpreadConstraints"}
	if got := slices.Sorted(maps.Keys(template.Properties)); !slices.Equal(got, want) {
		t.Errorf("spec.runner.template has %v, want %v", got, want)
	}
	walk("spec.runner.template", template, func(path string, schema apiextensionsv1.JSONSchemaProps) {
		if schema.XPreserveUnknownFields != nil {
			t.Errorf("%s takes anything", path)
		}
	})
}

// TestReferencesStayInTheNamespace: a Secret, a ConfigMap or a Service is named, and
// looked for beside the benchmark; no field says where else.
func TestReferencesStayInTheNamespace(t *testing.T) {
	walk("spec", specSchema(t), func(path string, schema apiextensionsv1.JSONSchemaProps) {
		if strings.HasPrefix(path, "spec.runner.template.affinity.") {
			return // says near which pods to run
		}
		for name := range schema.Properties {
			if strings.Contains(strings.ToLower(name), "namespace") {
				t.Errorf("%s.%s leads out of the namespace", path, name)
			}
			if strings.EqualFold(name, "password") || strings.EqualFold(name, "token") {
				t.Errorf("%s.%s is a secret in plain text", path, name)
			}
		}
	})
}

// walk visits a schema and all below it.
func walk(path string, schema apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name, child := range schema.Properties {
		walk(path+"."+name, child, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", *schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(path+"{}", *schema.AdditionalProperties.Schema, visit)
	}
}
