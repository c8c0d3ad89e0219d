package plan

import (
	"os"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
)

// gitOpsStates are the states that a benchmark can be in, and what tools for GitOps must
// make of them.
var gitOpsStates = []struct {
	name    string
	in      *situation
	after   func(*v1alpha1.DBBenchmark) // a change since the controller was last there
	kstatus status.Status
	argo    string
	flux    string
}{
	{name: "new", in: newSituation(fresh), kstatus: status.InProgressStatus, argo: "Progressing", flux: "inProgress"},
	{name: "about to start", in: newSituation(), kstatus: status.InProgressStatus, argo: "Progressing", flux: "inProgress"},
	{name: "running", in: newSituation(job("r1", running())), kstatus: status.InProgressStatus, argo: "Progressing", flux: "inProgress"},
	{name: "server busy", in: newSituation(func(s *situation) {
		s.o.Queue = []Claim{{"team", "other", t0.Add(-time.Hour), t0.Add(-time.Hour)}}
	}), kstatus: status.InProgressStatus, argo: "Progressing", flux: "inProgress"},
	{name: "half done", in: newSituation(done("r1", "r2")), kstatus: status.InProgressStatus, argo: "Progressing", flux: "inProgress"},
	{name: "suspended at once", in: newSituation(fresh, suspend), kstatus: status.InProgressStatus, argo: "Suspended", flux: ""},
	{name: "suspended half-way", in: newSituation(done("r1"), suspend), kstatus: status.InProgressStatus, argo: "Suspended", flux: ""},
	{name: "complete", in: newSituation(done("r1", "r2", "r3")), kstatus: status.CurrentStatus, argo: "Healthy", flux: "current"},
	{name: "failed", in: newSituation(failing("r1", v1alpha1.ReasonAuthenticationFailed)), kstatus: status.FailedStatus, argo: "Degraded", flux: "failed"},
	{name: "some runs failed", in: newSituation(done("r1", "r2"), failing("r3", v1alpha1.ReasonWorkloadFailed), func(s *situation) {
		s.b.Spec.OnFailure = v1alpha1.OnFailureContinue
	}), kstatus: status.FailedStatus, argo: "Degraded", flux: "failed"},
	{name: "refused", in: newSituation(func(s *situation) { s.o.SpecError = invalid("spec.sweep", "no") }),
		kstatus: status.FailedStatus, argo: "Degraded", flux: "failed"},
	{name: "changed after its end", in: newSituation(done("r1", "r2", "r3")), after: func(b *v1alpha1.DBBenchmark) { b.Generation++ },
		kstatus: status.InProgressStatus, argo: "Progressing", flux: "inProgress"},
	{name: "changed after its failure", in: newSituation(failing("r1", v1alpha1.ReasonAuthenticationFailed)),
		after: func(b *v1alpha1.DBBenchmark) { b.Generation++ }, kstatus: status.InProgressStatus, argo: "Progressing", flux: "inProgress"},
	{name: "not passed", in: newSituation(done("r1", "r2", "r3")), after: func(b *v1alpha1.DBBenchmark) { setPassed(b, metav1.ConditionFalse) },
		kstatus: status.CurrentStatus, argo: "Degraded", flux: "failed"},
	{name: "passed", in: newSituation(done("r1", "r2", "r3")), after: func(b *v1alpha1.DBBenchmark) { setPassed(b, metav1.ConditionTrue) },
		kstatus: status.CurrentStatus, argo: "Healthy", flux: "current"},
	{name: "deleted", in: newSituation(done("r1", "r2", "r3")), after: func(b *v1alpha1.DBBenchmark) { b.DeletionTimestamp = &metav1.Time{Time: t0} },
		kstatus: status.TerminatingStatus, argo: "Healthy", flux: "current"},
}

func setPassed(b *v1alpha1.DBBenchmark, s metav1.ConditionStatus) {
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPassed, Status: s,
		Reason: v1alpha1.ReasonThresholdsNotMet, Message: "latency.p99 is 3 ms", ObservedGeneration: b.Generation})
}

// TestGitOps holds the conditions to the rules of kstatus, and the health checks of Argo
// CD and Flux that config has to the same states.
func TestGitOps(t *testing.T) {
	argo, flux := argoHealth(t), fluxHealth(t)
	for _, c := range gitOpsStates {
		t.Run(c.name, func(t *testing.T) {
			b := c.in.b.DeepCopy()
			b.APIVersion, b.Kind = v1alpha1.GroupVersion.String(), "DBBenchmark"
			b.Status = settled(b, c.in.o)
			if c.after != nil {
				c.after(b)
			}
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
			if err != nil {
				t.Fatal(err)
			}
			got, err := status.Compute(&unstructured.Unstructured{Object: object})
			if err != nil || got.Status != c.kstatus {
				t.Errorf("kstatus: %+v, %v; want %s", got, err, c.kstatus)
			}
			if got := argo(t, object); got != c.argo {
				t.Errorf("Argo CD: %s, want %s", got, c.argo)
			}
			if got := flux(t, object); got != c.flux {
				t.Errorf("Flux: %q, want %q", got, c.flux)
			}
		})
	}
}

// TestGitOpsUnseen: an object without a status is not taken for one that is well.
func TestGitOpsUnseen(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"generation": int64(1)}}
	if got := argoHealth(t)(t, object); got != "Progressing" {
		t.Errorf("Argo CD: %s", got)
	}
	object["status"] = map[string]any{}
	if got := fluxHealth(t)(t, object); got != "inProgress" {
		t.Errorf("Flux: %s", got)
	}
}

// settled is the status when the controller has nothing left to write.
func settled(b *v1alpha1.DBBenchmark, o Observed) v1alpha1.DBBenchmarkStatus {
	b = b.DeepCopy()
	for range 3 {
		b.Status = Next(t0.Add(2*time.Hour), b, o).Status
	}
	return b.Status
}

func readManifest(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// argoHealth runs the script as Argo CD does: with the object as obj, and no libraries
// but the base and strings.
func argoHealth(t *testing.T) func(*testing.T, map[string]any) string {
	var cm struct{ Data map[string]string }
	readManifest(t, "../../config/argocd/argocd-cm.yaml", &cm)
	script := cm.Data["resource.customizations.health.dbbench.dev_DBBenchmark"]
	return func(t *testing.T, object map[string]any) string {
		l := lua.NewState(lua.Options{SkipOpenLibs: true})
		defer l.Close()
		lua.OpenBase(l)
		l.SetGlobal("obj", toLua(l, object))
		if err := l.DoString(script); err != nil {
			t.Fatal(err)
		}
		result, ok := l.Get(-1).(*lua.LTable)
		if !ok || result.RawGetString("message").String() == "" {
			t.Fatalf("the script gives %v", l.Get(-1))
		}
		return result.RawGetString("status").String()
	}
}

func toLua(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, value := range v {
			table.RawSetString(key, toLua(l, value))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, value := range v {
			table.Append(toLua(l, value))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	}
	return lua.LNil
}

// fluxHealth evaluates the expressions in the order of Flux. Where none holds, Flux
// waits on.
func fluxHealth(t *testing.T) func(*testing.T, map[string]any) string {
	var k struct {
		Spec struct {
			HealthCheckExprs []struct{ InProgress, Failed, Current string }
		}
	}
	readManifest(t, "../../config/flux/benchmarks.yaml", &k)
	env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	exprs := k.Spec.HealthCheckExprs[0]
	return func(t *testing.T, object map[string]any) string {
		for _, e := range []struct{ name, text string }{{"inProgress", exprs.InProgress}, {"failed", exprs.Failed}, {"current", exprs.Current}} {
			ast, issues := env.Compile(e.text)
			if issues.Err() != nil {
				t.Fatal(issues.Err())
			}
			program, err := env.Program(ast)
			if err != nil {
				t.Fatal(err)
			}
			holds, _, err := program.Eval(object)
			if err != nil {
				t.Fatalf("%s: %v", e.name, err)
			}
			if holds.Value() == true {
				return e.name
			}
		}
		return ""
	}
}
