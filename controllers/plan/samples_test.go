package plan

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
)

// TestSamples has every sample pass admission and the planner, as it stands.
func TestSamples(t *testing.T) {
	runs := map[string]int{}
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			if !bytes.Contains(document, []byte("kind: DBBenchmark")) {
				continue
			}
			name, n := planSample(t, file, document)
			runs[name] = n
		}
	}
	// Points × targets × iterations.
	want := map[string]int{
		"seed1-mysqlslap-insert": 30 * 3, "seed1-mysqlslap-insert-smoke": 4 * 3,
		"seed2-insert-myisam": 18 * 3, "seed2-insert-innodb-autocommit": 4 * 3, "seed2-insert-innodb": 12 * 3,
		"seed2-update-myisam": 10 * 3, "seed2-replace-myisam": 5 * 3,
		"seed2-insert-smoke": 9, "seed2-update-smoke": 4, "seed2-replace-smoke": 2,
		"seed3-mysql-vs-mariadb-sysbench": 20 * 2 * 3, "seed3-sysbench-smoke": 4 * 2 * 4,
		"seed3-linkbench": 2 * 3, "seed3-linkbench-smoke": 2 * 2,
		"seed4-identical-inserts": 2 * 2 * 3, "seed4-identical-inserts-smoke": 2 * 2,
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("runs by sample:\n%s", diff)
	}
}

func planSample(t *testing.T, file string, document []byte) (name string, runs int) {
	t.Helper()
	var b v1alpha1.DBBenchmark
	if err := yaml.UnmarshalStrict(document, &b); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		t.Fatal(err)
	}
	var tree struct {
		Spec map[string]any `json:"spec"`
	}
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	if err := Admit(tree.Spec); err != nil {
		t.Errorf("%s, %s: %v", file, b.Name, err)
	}
	all, err := Expand(&b.Spec)
	if err != nil {
		t.Errorf("%s, %s: %v", file, b.Name, err)
	}
	return b.Name, len(all)
}
