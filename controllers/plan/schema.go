package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/config/crd"
)

// specSchema is what admission knows of a spec: its structure, its ranges and its
// rules. A point of a sweep is held to the same.
type specSchema struct {
	structure *schema.Structural
	openAPI   validation.SchemaValidator
	rules     *cel.Validator
}

// loadSchema reads the generated CustomResourceDefinition, once. That it can be read
// is a matter of the build, so that a failure is a defect and panics.
var loadSchema = sync.OnceValue(func() *specSchema {
	s, err := newSpecSchema(crd.DBBenchmarks)
	if err != nil {
		panic(fmt.Sprintf("the embedded CustomResourceDefinition: %v", err))
	}
	return s
})

func newSpecSchema(text []byte) (*specSchema, error) {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &v1); err != nil {
		return nil, err
	}
	var definition apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &definition, nil); err != nil {
		return nil, err
	}
	root := definition.Spec.Validation
	if root == nil {
		root = definition.Spec.Versions[0].Schema
	}
	spec := root.OpenAPIV3Schema.Properties["spec"]
	structure, err := schema.NewStructural(&spec)
	if err != nil {
		return nil, err
	}
	openAPI, _, err := validation.NewSchemaValidator(&spec)
	if err != nil {
		return nil, err
	}
	return &specSchema{structure, openAPI, cel.NewValidator(structure, false, celconfig.PerCallLimit)}, nil
}

// validate holds a spec, as JSON, to what admission holds it to.
func (s *specSchema) validate(spec map[string]any) field.ErrorList {
	path := field.NewPath("spec")
	errs := validation.ValidateCustomResource(path, spec, s.openAPI)
	if len(errs) > 0 {
		return errs // rules may presume what the schema ensures
	}
	errs, _ = s.rules.Validate(context.Background(), path, s.structure, spec, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// setDefaults sets the fields of a spec, as JSON, that are absent and have a default.
func (s *specSchema) setDefaults(spec map[string]any) { defaulting.Default(spec, s.structure) }

// lookUp resolves a path such as load.clients to a field that takes a single value.
func (s *specSchema) lookUp(path string) error {
	at, walked := s.structure, "spec"
	for name := range strings.SplitSeq(path, ".") {
		next, ok := at.Properties[name]
		if !ok {
			return fmt.Errorf("%s has no field %q; it has %s", walked, name, strings.Join(slices.Sorted(maps.Keys(at.Properties)), ", "))
		}
		at, walked = &next, walked+"."+name
	}
	switch at.Type {
	case "integer", "string", "boolean":
		return nil
	case "":
		if at.XIntOrString {
			return nil
		}
	}
	return fmt.Errorf("%s is not a field with a single value; name one below it: %s", walked, strings.Join(slices.Sorted(maps.Keys(at.Properties)), ", "))
}
