package resources

import (
	"fmt"
	"path"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/runner/contract"
)

const (
	// AnnotationRunSpec carries the run's spec to its pods, which read it as a file.
	AnnotationRunSpec = "dbbench.dev/run-spec"
	// AnnotationBenchmark has the whole name that LabelBenchmark may be too short for.
	AnnotationBenchmark = "dbbench.dev/benchmark"
)

const (
	// deadlineMargin is what a Job gets beyond the runner's own timeout, so that a
	// runner that is late still reports for itself.
	deadlineMargin = 90 * time.Second
	// gracePeriod is for clean-up after SIGTERM.
	gracePeriod = 30 * time.Second
	// cleanupTimeout bounds the Job that drops a deleted benchmark's data.
	cleanupTimeout = time.Minute

	runnerUser = 65532
)

// RunJob is the Job of an attempt at a run.
func RunJob(b *v1alpha1.DBBenchmark, execution string, run plan.Run, image string) (*batchv1.Job, error) {
	spec, err := RunSpec(b, execution, run)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{LabelRun: run.ID, LabelPoint: run.Point}
	if run.Attempt > 0 {
		labels[LabelAttempt] = strconv.Itoa(int(run.Attempt))
	}
	t := template{
		execution: execution, name: RunJobName(b, execution, run), purpose: PurposeRun, labels: labels,
		spec: spec, workload: run.Workload, image: image, deadline: plan.RunTimeout(&b.Spec) + deadlineMargin,
	}
	if spec.Rendezvous != nil {
		t.subdomain = ServiceName(b)
	}
	return job(b, t)
}

// CleanupJob is the Job that drops what a benchmark has made in a target.
func CleanupJob(b *v1alpha1.DBBenchmark, c plan.Cleanup, image string) (*batchv1.Job, error) {
	run := plan.Run{ID: "cleanup-" + plan.Shorten(c.Target, 30), Target: c.Target, Workload: c.Workload, Load: c.Load}
	spec, err := RunSpec(b, c.Execution, run)
	if err != nil {
		return nil, err
	}
	spec.Timeout, spec.Replicas, spec.Rendezvous = contract.Duration(cleanupTimeout), 1, nil
	labels := map[string]string{LabelRun: run.ID}
	name := JobName(b, string(b.UID[:min(8, len(b.UID))]), run.ID)
	if c.Dataset != "" {
		labels[LabelDataset] = c.Dataset
		name = JobName(b, c.Execution, run.ID+"-"+c.Dataset)
	}
	return job(b, template{
		execution: c.Execution, name: name, purpose: PurposeCleanup, labels: labels,
		spec: spec, workload: c.Workload, args: []string{"cleanup"}, image: image, deadline: cleanupTimeout,
	})
}

// template is in what the Jobs of a benchmark differ.
type template struct {
	execution, name, purpose string
	labels                   map[string]string
	spec                     *contract.RunSpec
	workload                 v1alpha1.Workload
	args                     []string
	image                    string
	deadline                 time.Duration
	// subdomain is the Service under which the pods have names; it is empty where they
	// need none.
	subdomain string
}

func job(b *v1alpha1.DBBenchmark, t template) (*batchv1.Job, error) {
	text, err := contract.EncodeRunSpec(*t.spec)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", t.spec.Run.ID, err)
	}
	target, err := findTarget(b, t.spec.Target.Name)
	if err != nil {
		return nil, err
	}
	labels := merge(Labels(b, t.execution, t.purpose), t.labels)
	labels[LabelServer] = plan.ServerKey(b.Namespace, target)
	labels[LabelTarget] = target.Name
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: t.name, Namespace: b.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{owner(b)},
		},
		Spec: batchv1.JobSpec{
			Completions:           new(t.spec.Replicas),
			Parallelism:           new(t.spec.Replicas),
			CompletionMode:        new(batchv1.IndexedCompletion),
			BackoffLimit:          new(int32(0)),
			PodReplacementPolicy:  new(batchv1.Failed),
			ActiveDeadlineSeconds: new(int64(t.deadline.Seconds())),
			Template:              podTemplate(b, t, mountsOf(target, t.workload, t.purpose), labels, string(text)),
		},
	}, nil
}

func owner(b *v1alpha1.DBBenchmark) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "DBBenchmark",
		Name: b.Name, UID: b.UID, Controller: new(true),
	}
}

func podTemplate(b *v1alpha1.DBBenchmark, job template, files []mount, labels map[string]string, runSpec string) corev1.PodTemplateSpec {
	t := b.Spec.Runner.Template
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      merge(t.Labels, labels),
			Annotations: merge(t.Annotations, map[string]string{AnnotationRunSpec: runSpec, AnnotationBenchmark: b.Name}),
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Subdomain:                     job.subdomain,
			TerminationGracePeriodSeconds: new(int64(gracePeriod.Seconds())),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(runnerUser)), RunAsGroup: new(int64(runnerUser)), FSGroup: new(int64(runnerUser)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			ImagePullSecrets:          t.ImagePullSecrets,
			NodeSelector:              t.NodeSelector,
			Affinity:                  t.Affinity,
			Tolerations:               t.Tolerations,
			TopologySpreadConstraints: t.TopologySpreadConstraints,
			PriorityClassName:         t.PriorityClassName,
			Containers: []corev1.Container{{
				Name: plan.RunnerContainer, Image: orDefault(t.Image, job.image), ImagePullPolicy: t.ImagePullPolicy,
				Command: []string{"/runner"}, Args: append(job.args, "--termination-log", contract.TerminationPath),
				Env:                      []corev1.EnvVar{nodeName},
				Ports:                    ports(job),
				Resources:                runnerResources(t.Resources),
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: volumeMounts(files),
			}},
			Volumes: volumes(files),
		},
	}
}

// nodeName tells the runner where it runs.
var nodeName = corev1.EnvVar{Name: contract.NodeNameEnv, ValueFrom: &corev1.EnvVarSource{
	FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"},
}}

const rendezvousPort = "rendezvous"

func ports(t template) []corev1.ContainerPort {
	if t.subdomain == "" {
		return nil
	}
	return []corev1.ContainerPort{{Name: rendezvousPort, ContainerPort: contract.RendezvousPort, Protocol: corev1.ProtocolTCP}}
}

// Service gives the pods of a benchmark's runs names by which they find each other. They
// need them before they are ready.
func Service(b *v1alpha1.DBBenchmark) *corev1.Service {
	labels := Labels(b, "", PurposeService)
	delete(labels, LabelExecution)
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: ServiceName(b), Namespace: b.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner(b)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 map[string]string{LabelUID: string(b.UID), LabelPurpose: PurposeRun},
			Ports:                    []corev1.ServicePort{{Name: rendezvousPort, Port: contract.RendezvousPort, TargetPort: intstr.FromString(rendezvousPort)}},
		},
	}
}

// merge lays ours over theirs.
func merge(theirs, ours map[string]string) map[string]string {
	all := make(map[string]string, len(theirs)+len(ours))
	for _, m := range []map[string]string{theirs, ours} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// runnerResources are a user's, or enough for a thousand clients. Without a limit of
// the CPU the generator is not throttled while it measures.
func runnerResources(given *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if given != nil {
		return *given
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
}

// mount is a volume and where its files appear in the runner.
type mount struct {
	name, path string
	source     corev1.VolumeSource
}

// secretMode lets the runner's group read.
const secretMode = 0o440

// mountsOf are the files of a runner: its spec, the target's secrets and, where they are
// in a ConfigMap, the user's statements. Without the latter no run can start, but data can
// be dropped.
func mountsOf(t v1alpha1.Target, w v1alpha1.Workload, purpose string) []mount {
	ref := t.CredentialsSecretRef
	all := []mount{
		{"run", path.Dir(contract.RunSpecPath), corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{
				Path:     path.Base(contract.RunSpecPath),
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + AnnotationRunSpec + "']"},
			}},
		}}},
		{"credentials", contract.CredentialsDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: ref.Name, DefaultMode: new(int32(secretMode)),
			Items: []corev1.KeyToPath{
				{Key: orDefault(ref.UsernameKey, "username"), Path: contract.UsernameFile},
				{Key: orDefault(ref.PasswordKey, "password"), Path: contract.PasswordFile},
			},
		}}},
	}
	if t.TLS.CASecretRef != nil || t.TLS.ClientSecretRef != nil {
		all = append(all, mount{"tls", contract.TLSDir, corev1.VolumeSource{Projected: tlsSources(t.TLS)}})
	}
	if w.SQL != nil && w.SQL.ConfigMapKeyRef != nil {
		ref := w.SQL.ConfigMapKeyRef
		source := &corev1.ConfigMapVolumeSource{
			LocalObjectReference: ref.LocalObjectReference,
			Items:                []corev1.KeyToPath{{Key: ref.Key, Path: path.Base(contract.StatementsPath)}},
		}
		if purpose == PurposeCleanup {
			source.Optional = new(true)
		}
		all = append(all, mount{"statements", path.Dir(contract.StatementsPath), corev1.VolumeSource{ConfigMap: source}})
	}
	return all
}

func volumes(files []mount) []corev1.Volume {
	var all []corev1.Volume
	for _, f := range files {
		all = append(all, corev1.Volume{Name: f.name, VolumeSource: f.source})
	}
	return all
}

func volumeMounts(files []mount) []corev1.VolumeMount {
	var all []corev1.VolumeMount
	for _, f := range files {
		all = append(all, corev1.VolumeMount{Name: f.name, MountPath: f.path, ReadOnly: true})
	}
	return all
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

func tlsSources(tls v1alpha1.TLS) *corev1.ProjectedVolumeSource {
	projected := &corev1.ProjectedVolumeSource{DefaultMode: new(int32(secretMode))}
	add := func(name string, items ...corev1.KeyToPath) {
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
		}})
	}
	if ref := tls.CASecretRef; ref != nil {
		add(ref.Name, corev1.KeyToPath{Key: orDefault(ref.Key, contract.CAFile), Path: contract.CAFile})
	}
	if ref := tls.ClientSecretRef; ref != nil {
		add(ref.Name, corev1.KeyToPath{Key: "tls.crt", Path: contract.ClientCertFile}, corev1.KeyToPath{Key: "tls.key", Path: contract.ClientKeyFile})
	}
	return projected
}

// Results is an empty shard of an execution's results.
func Results(b *v1alpha1.DBBenchmark, execution string, shard int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: ResultsName(b, execution, shard), Namespace: b.Namespace,
			Labels: Labels(b, execution, PurposeResults), OwnerReferences: []metav1.OwnerReference{owner(b)},
		},
		Data: map[string]string{},
	}
}

// AnnotationGeneration is the generation of the spec whose thresholds a report judges.
const AnnotationGeneration = "dbbench.dev/generation"

// Report is the empty report of an execution.
func Report(b *v1alpha1.DBBenchmark, execution string) *corev1.ConfigMap {
	cm := Results(b, execution, 0)
	cm.Name, cm.Labels = ReportName(b, execution), Labels(b, execution, PurposeReport)
	return cm
}
