package crd

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// TestAccepted holds the definition to what an API server holds it to, the cost of
// its CEL rules included.
func TestAccepted(t *testing.T) {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(DBBenchmarks, &v1); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	var definition apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &definition, nil); err != nil {
		t.Fatal(err)
	}
	definition.Status.StoredVersions = []string{"v1alpha1"}
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &definition) {
		t.Error(err)
	}
}
