package resources

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/runner/contract"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, o any) {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (write it anew with -update):\n%s", path, diff)
	}
}

func bench(t *testing.T, spec string) *v1alpha1.DBBenchmark {
	t.Helper()
	b := &v1alpha1.DBBenchmark{}
	b.Namespace, b.Name, b.UID = "team", "nightly", "0b6a0052-d2b4-b220-8f5f-94f9851cca3e"
	if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
		t.Fatal(err)
	}
	if err := plan.Default(&b.Spec); err != nil {
		t.Fatal(err)
	}
	return b
}

const plain = `
targets:
- {name: mariadb, host: mariadb.db.svc, credentialsSecretRef: {name: mariadb-bench}}
workload: {slap: {loadType: Write, autoIncrement: true}}
load: {clients: 10, eventsPerClient: 1000, warmup: 10s}
`

const everything = `
targets:
- name: mysql
  serviceRef: {name: mysql, port: 3307}
  database: shop
  allowExistingDatabase: true
  credentialsSecretRef: {name: mysql-bench, usernameKey: user, passwordKey: pass}
  tls: {mode: VerifyIdentity, caSecretRef: {name: mysql-ca, key: root.pem}, clientSecretRef: {name: mysql-client}, serverName: mysql.example.com}
  sessionVariables: {sql_mode: ""}
workload: {slap: {loadType: Key, guidPrimary: true}}
load: {clients: 4, duration: 1m}
runTimeout: 10m
cleanup: OnSuccess
runner:
  replicas: 2
  template:
    image: registry.example.com/runner:v1
    imagePullPolicy: Always
    imagePullSecrets: [{name: pull}]
    labels: {team: database, dbbench.dev/run: forged}
    annotations: {note: hello, dbbench.dev/run-spec: forged}
    resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "2", memory: 1Gi}}
    nodeSelector: {pool: load}
    tolerations: [{key: load, operator: Exists}]
    priorityClassName: high
`

const statements = `
targets:
- {name: mariadb, host: mariadb.db.svc, credentialsSecretRef: {name: mariadb-bench}}
workload: {sql: {setup: CREATE TABLE t (id INT), configMapKeyRef: {name: queries, key: nightly.sql}}}
load: {duration: 10s}
`

func TestRunJob(t *testing.T) {
	for name, spec := range map[string]string{"plain": plain, "everything": everything, "statements": statements} {
		t.Run(name, func(t *testing.T) {
			b := bench(t, spec)
			run := plan.Run{ID: "p0001-x-i1", Point: "p0001", Target: b.Spec.Targets[0].Name, Iteration: 1, Workload: b.Spec.Workload, Load: b.Spec.Load}
			job, err := RunJob(b, "1a2b3c4d", run, "dbbench.dev/operator:v1")
			if err != nil {
				t.Fatal(err)
			}
			text := job.Spec.Template.Annotations[AnnotationRunSpec]
			if _, err := contract.DecodeRunSpec([]byte(text)); err != nil {
				t.Errorf("the runner refuses its spec: %v", err)
			}
			golden(t, "job-"+name, job)
		})
	}
}

func TestCleanupJob(t *testing.T) {
	b := bench(t, everything)
	job, err := CleanupJob(b, plan.Cleanup{Execution: plan.FinalExecution, Target: "mysql", Workload: b.Spec.Workload, Load: b.Spec.Load}, "dbbench.dev/operator:v1")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "job-cleanup", job)
}

// TestCleanupWithoutStatements: data can be dropped when the ConfigMap is gone.
func TestCleanupWithoutStatements(t *testing.T) {
	b := bench(t, statements)
	job, err := CleanupJob(b, plan.Cleanup{Execution: "1a2b3c4d", Target: "mariadb", Dataset: "d0001", Workload: b.Spec.Workload, Load: b.Spec.Load}, "image")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil && *v.ConfigMap.Optional {
			return
		}
	}
	t.Error("the clean-up waits for the ConfigMap")
}

func TestService(t *testing.T) {
	b := bench(t, everything)
	golden(t, "service", Service(b))
	b.Name = "4k." + strings.Repeat("x", 250)
	if errs := validation.IsDNS1035Label(ServiceName(b)); len(errs) > 0 {
		t.Error(errs)
	}
	// The name by which replica 0 is found is that of its pod.
	run := plan.Run{ID: "p0001-x-i1", Attempt: 2, Target: "mysql", Workload: b.Spec.Workload, Load: b.Spec.Load}
	job, err := RunJob(b, "1a2b3c4d", run, "image")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := contract.DecodeRunSpec([]byte(job.Spec.Template.Annotations[AnnotationRunSpec]))
	if err != nil {
		t.Fatal(err)
	}
	if want := job.Name + "-0." + job.Spec.Template.Spec.Subdomain + ".team.svc"; spec.Rendezvous.Host != want || len(want) > 253 {
		t.Errorf("host %s, want %s", spec.Rendezvous.Host, want)
	}
	for key, value := range Service(b).Spec.Selector {
		if job.Spec.Template.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, the pods have %q", key, value, job.Spec.Template.Labels[key])
		}
	}
}

func TestResults(t *testing.T) { golden(t, "results", Results(bench(t, plain), "1a2b3c4d", 0)) }

func TestUnknownTarget(t *testing.T) {
	if _, err := RunJob(bench(t, plain), "e", plan.Run{ID: "r", Target: "nobody"}, "image"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("error: %v", err)
	}
}

// TestDefaultResources: a ResourceQuota wants requests and limits on every container.
func TestDefaultResources(t *testing.T) {
	r := runnerResources(nil)
	if r.Requests.Cpu().Cmp(resource.MustParse("100m")) != 0 || r.Limits.Memory().Cmp(resource.MustParse("512Mi")) != 0 {
		t.Errorf("%+v", r)
	}
	if _, limited := r.Limits[corev1.ResourceCPU]; limited {
		t.Error("a limit of the CPU would throttle what is measured")
	}
}

func TestNames(t *testing.T) {
	long := bench(t, plain)
	long.Name = strings.Repeat("a.long-name.", 22)[:253]
	other := long.DeepCopy()
	other.Name = long.Name[:252] + "x"
	for _, b := range []*v1alpha1.DBBenchmark{bench(t, plain), long, other} {
		for _, run := range []string{"p0001-mariadb-i1", strings.Repeat("r", 63)} {
			name := JobName(b, "1a2b3c4d", run)
			// The pods of an Indexed Job have an index and five characters more.
			if errs := validation.IsDNS1123Label(name + "-00000"); len(errs) > 0 {
				t.Errorf("Job %s: %v", name, errs)
			}
		}
		if errs := validation.IsDNS1123Subdomain(ResultsName(b, "1a2b3c4d", 12345)); len(errs) > 0 {
			t.Errorf("ConfigMap of %s: %v", b.Name, errs)
		}
		for key, value := range Labels(b, "1a2b3c4d", PurposeRun) {
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Errorf("label %s=%s: %v", key, value, errs)
			}
		}
	}
	if JobName(long, "e", "r1") == JobName(long, "e", "r2") || JobName(long, "e", "r1") == JobName(other, "e", "r1") ||
		ResultsName(long, "e", 0) == ResultsName(long, "e", 1) {
		t.Error("different things have the same name")
	}
}
