package crd_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
)

// testCase is a spec, and what is said to it; nothing if it is accepted.
type testCase struct {
	name string
	spec map[string]any
	says string
}

func readCases(t *testing.T) []testCase {
	t.Helper()
	text, err := os.ReadFile("testdata/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name, Says string
		Patch      json.RawMessage
	}
	var file struct {
		Base              json.RawMessage
		Accepted, Refused []entry
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	for _, e := range append(file.Accepted, file.Refused...) {
		merged, err := jsonpatch.MergePatch(file.Base, e.Patch)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		c := testCase{name: e.Name, says: e.Says}
		if err := utiljson.Unmarshal(merged, &c.spec); err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		cases = append(cases, c)
	}
	return cases
}

func (c testCase) check(t *testing.T, err error) {
	t.Helper()
	switch {
	case c.says == "" && err != nil:
		t.Errorf("refused: %v", err)
	case c.says != "" && err == nil:
		t.Errorf("accepted; want %q", c.says)
	case c.says != "" && !strings.Contains(err.Error(), c.says):
		t.Errorf("got %v\nwant %q", err, c.says)
	}
}

// TestAdmissionWithoutCluster and TestAdmission hold the planner and an API server to
// the same words.
func TestAdmissionWithoutCluster(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.name, func(t *testing.T) { c.check(t, plan.Admit(c.spec)) })
	}
}

func TestAdmission(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make test-envtest")
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{"bases"}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range readCases(t) {
		t.Run(c.name, func(t *testing.T) {
			b := &unstructured.Unstructured{Object: map[string]any{"spec": c.spec}}
			b.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("DBBenchmark"))
			b.SetNamespace("default")
			b.SetName("test")
			c.check(t, api.Create(t.Context(), b, client.DryRunAll, client.FieldValidation("Strict")))
		})
	}
}
