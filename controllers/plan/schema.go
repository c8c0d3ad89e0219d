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
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/config/crd"
)

// admission is what an API server knows of a spec: its structure, the ranges of its
// fields and the rules across them. A point of a sweep is held to the same.
type admission struct {
	structure *schema.Structural
	openAPI   validation.SchemaValidator
	rules     *cel.Validator
}

// specSchema reads the generated CustomResourceDefinition, once. Whether it can be
// read is settled when the program is built, so that a failure is a defect and panics.
var specSchema = sync.OnceValue(func() *admission {
	a, err := newAdmission(crd.DBBenchmarks)
	if err != nil {
		panic(fmt.Sprintf("the embedded CustomResourceDefinition: %v", err))
	}
	return a
})

func newAdmission(text []byte) (*admission, error) {
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
	return &admission{structure, openAPI, cel.NewValidator(structure, false, celconfig.PerCallLimit)}, nil
}

// validate holds a spec, as JSON, to all of it.
func (a *admission) validate(spec map[string]any) []*SpecError {
	if faults := a.checkFields(spec); len(faults) > 0 {
		return faults // the rules presume that the fields are what they should be
	}
	return a.checkRules(spec)
}

// checkFields checks each field by itself: its type, its range, its form.
func (a *admission) checkFields(spec map[string]any) []*SpecError {
	var faults []*SpecError
	path := field.NewPath("spec")
	errs := validation.ValidateCustomResource(path, spec, a.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(path, a.structure, spec)...)
	for _, e := range errs {
		faults = append(faults, invalid(e.Field, "%s", e.ErrorBody()))
	}
	return faults
}

// checkRules checks the rules across fields.
func (a *admission) checkRules(spec map[string]any) []*SpecError {
	errs, _ := a.rules.Validate(context.Background(), field.NewPath("spec"), a.structure, spec, nil, celconfig.RuntimeCELCostBudget)
	var faults []*SpecError
	for _, e := range errs {
		faults = append(faults, invalid(e.Field, "%s", e.Detail)) // the body would print the whole object
	}
	return faults
}

// dropUnknown drops the fields that no schema has, and returns their paths.
func (a *admission) dropUnknown(spec map[string]any) []string {
	return pruning.PruneWithOptions(spec, a.structure, false, schema.UnknownFieldPathOptions{
		TrackUnknownFieldPaths: true,
		ParentPath:             []string{"spec"},
	})
}

// setDefaults sets the fields of a spec, as JSON, that are absent and have a default.
func (a *admission) setDefaults(spec map[string]any) { defaulting.Default(spec, a.structure) }

// withoutDefaults is a spec, as JSON, less the fields that have their default.
func (a *admission) withoutDefaults(spec map[string]any) map[string]any {
	bare, _ := bare(spec, a.structure).(map[string]any)
	return bare
}

// bare is a value less the fields in it that have their default.
func bare(v any, s *schema.Structural) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, below := range v {
			field, known := s.Properties[name]
			if !known {
				kept[name] = below
				continue
			}
			stripped := bare(below, &field)
			if usual := field.Default.Object; usual != nil && equality.Semantic.DeepEqual(stripped, bare(usual, &field)) {
				continue
			}
			kept[name] = stripped
		}
		return kept
	case []any:
		if s.Items == nil {
			return v
		}
		kept := make([]any, len(v))
		for i, item := range v {
			kept[i] = bare(item, s.Items)
		}
		return kept
	}
	return v
}

// checkPath sees that a path such as load.clients names a field under workload or load
// that takes a single value.
func (a *admission) checkPath(path string) error {
	names := strings.Split(path, ".")
	if names[0] != "workload" && names[0] != "load" {
		return fmt.Errorf("%q is not under workload or load", path)
	}
	at := a.structure
	for i, name := range names {
		next, ok := at.Properties[name]
		if !ok {
			return fmt.Errorf("%s has no field %q; it has %s", strings.Join(names[:i], "."), name, strings.Join(slices.Sorted(maps.Keys(at.Properties)), ", "))
		}
		at = &next
	}
	switch {
	case at.Type == "integer", at.Type == "string", at.Type == "boolean", at.XIntOrString:
		return nil
	case len(at.Properties) > 0:
		return fmt.Errorf("%s has fields of its own; name one of them: %s", path, strings.Join(slices.Sorted(maps.Keys(at.Properties)), ", "))
	}
	return fmt.Errorf("%s is a list or a map, and an axis needs a field with a single value", path)
}
