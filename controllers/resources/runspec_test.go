package resources

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/runner/contract"
)

// filler sets every field of a value to something that no other field has.
type filler struct{ n int64 }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*x = resource.MustParse(fmt.Sprintf("%dKi", f.n))
		return
	case *metav1.Duration:
		x.Duration = time.Duration(f.n) * time.Second
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.n)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	default:
		panic("a field of type " + v.Type().String())
	}
}

// unset lists the fields of a value that are zero.
func unset(v reflect.Value, path string) []string {
	switch {
	case v.IsZero():
		return []string{path}
	case v.Kind() == reflect.Pointer:
		return unset(v.Elem(), path)
	case v.Kind() == reflect.Slice:
		return unset(v.Index(0), path+"[0]")
	case v.Kind() != reflect.Struct:
		return nil
	}
	var paths []string
	for i := range v.NumField() {
		paths = append(paths, unset(v.Field(i), path+"."+v.Type().Field(i).Name)...)
	}
	return paths
}

func asJSON(t *testing.T, v any) (tree map[string]any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestEveryField sets every field of each workload and sees that it reaches the runner.
func TestEveryField(t *testing.T) {
	kind := reflect.TypeFor[v1alpha1.Workload]()
	for i := range kind.NumField() {
		name := kind.Field(i).Name
		t.Run(name, func(t *testing.T) {
			b := bench(t, plain)
			run := plan.Run{ID: "r", Target: "mariadb", Iteration: 1, Load: b.Spec.Load}
			(&filler{}).fill(reflect.ValueOf(&run.Workload).Elem().Field(i))
			expectFields := map[string]bool{}
			if run.Workload.SQL != nil {
				run.Workload.SQL.ConfigMapKeyRef = nil // which excludes statements
				expectFields["SQL.StatementsFile"] = true
			}
			spec, err := RunSpec(b, "e", run)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asJSON(t, run.Workload), asJSON(t, spec.Workload)); diff != "" {
				t.Errorf("a field has changed on its way:\n%s", diff)
			}
			for _, path := range unset(reflect.ValueOf(spec.Workload).FieldByName(name), name) {
				if !expectFields[path] {
					t.Errorf("the runner has a field that no field of the resource sets: %s", path)
				}
			}
		})
	}
}

// TestEveryFieldOfLoad does the same for load.
func TestEveryFieldOfLoad(t *testing.T) {
	b := bench(t, plain)
	run := plan.Run{ID: "r", Target: "mariadb", Iteration: 1, Workload: b.Spec.Workload}
	(&filler{}).fill(reflect.ValueOf(&run.Load).Elem())
	spec, err := RunSpec(b, "e", run)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, run.Load), asJSON(t, spec.Load)); diff != "" {
		t.Errorf("a field has changed on its way:\n%s", diff)
	}
	if got := spec.Load; got.Clients != run.Load.Clients || got.EventsPerClient != *run.Load.EventsPerClient || got.Events != *run.Load.Events ||
		time.Duration(got.Duration) != run.Load.Duration.Duration || time.Duration(got.Warmup) != run.Load.Warmup.Duration ||
		got.Rate != *run.Load.Rate || got.Arrivals != string(run.Load.Arrivals) || time.Duration(got.Think) != run.Load.ThinkTime.Duration {
		t.Errorf("got %+v of %+v", got, run.Load)
	}
}

// TestDefaultsAreValid: the runner takes each workload as the schema completes it.
func TestDefaultsAreValid(t *testing.T) {
	for name, workload := range map[string]string{
		"slap": "{slap: {}}", "oltp": "{oltp: {}}", "oltp with a distribution": "{oltp: {distribution: {type: Zipfian}}}",
		"linkbench": "{linkbench: {}}", "payload": "{payload: {}}",
		"payload with sizes": "{payload: {operation: Update, size: 1, toSize: 1Mi, lengths: Uniform, minSize: 1}}",
		"sql":                "{sql: {statements: [{name: one, sql: SELECT 1}], parameters: [{name: id, type: Uniform}]}}",
		"sql in a ConfigMap": "{sql: {configMapKeyRef: {name: c, key: k}, order: Sequential}}",
	} {
		t.Run(name, func(t *testing.T) {
			b := bench(t, "targets: [{name: m, host: m, credentialsSecretRef: {name: s}}]\nworkload: "+workload+"\nload: {duration: 10s}")
			runs, err := plan.Expand(&b.Spec)
			if err != nil {
				t.Fatal(err)
			}
			job, err := RunJob(b, "e", runs[0], "image")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := contract.DecodeRunSpec([]byte(job.Spec.Template.Annotations[AnnotationRunSpec])); err != nil {
				t.Errorf("the runner refuses it: %v", err)
			}
		})
	}
}

// TestNoErrorsToIgnore: an empty list is not the default one.
func TestNoErrorsToIgnore(t *testing.T) {
	b := bench(t, "targets: [{name: m, host: m, credentialsSecretRef: {name: s}}]\nworkload: {oltp: {ignoreErrors: []}}")
	runs, err := plan.Expand(&b.Spec)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := RunSpec(b, "e", runs[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Workload.OLTP.IgnoreErrors) > 0 {
		t.Errorf("ignored: %v", spec.Workload.OLTP.IgnoreErrors)
	}
}

// TestPrepare: data of several runs is loaded and kept as the workload is used to.
func TestPrepare(t *testing.T) {
	for _, tc := range []struct{ spec, prepare, cleanup string }{
		{"workload: {slap: {}}", "PerRun", "Always"},
		{"workload: {slap: {}}\ncleanup: OnSuccess", "PerRun", "OnSuccess"},
		{"workload: {oltp: {}}", "PerDataset", "Never"},
		{"workload: {linkbench: {}}", "PerDataset", "Never"},
		{"workload: {oltp: {}}\nprepare: PerRun", "PerRun", "Always"},
		{"workload: {payload: {}}\nprepare: Never", "Never", "Never"},
	} {
		b := bench(t, "targets: [{name: m, host: m, credentialsSecretRef: {name: s}}]\n"+tc.spec)
		spec, err := RunSpec(b, "e", plan.Run{ID: "r", Target: "m", Workload: b.Spec.Workload, Load: b.Spec.Load})
		if err != nil {
			t.Fatal(err)
		}
		if string(spec.Prepare) != tc.prepare || string(spec.Cleanup) != tc.cleanup {
			t.Errorf("%s: got %s and %s", tc.spec, spec.Prepare, spec.Cleanup)
		}
	}
}
