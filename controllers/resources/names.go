// Package resources builds the objects that a benchmark consists of in a cluster. It
// is pure: the same input gives the same object.
package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"dbbench.dev/operator/api/v1alpha1"
)

// The labels of everything that belongs to a benchmark, besides the recommended ones.
const (
	LabelBenchmark = "dbbench.dev/benchmark"     // its name, cut to fit
	LabelUID       = "dbbench.dev/benchmark-uid" // says for sure whose it is
	LabelExecution = "dbbench.dev/execution"
	LabelRun       = "dbbench.dev/run"
	LabelPoint     = "dbbench.dev/point"
	LabelTarget    = "dbbench.dev/target"
	LabelServer    = "dbbench.dev/server" // digest of the server's address
	LabelPurpose   = "dbbench.dev/purpose"
)

// The values of LabelPurpose.
const (
	PurposeRun     = "run"
	PurposeCleanup = "cleanup"
	PurposeResults = "results"
)

// maxLabel is the greatest length of a label's value, and of the names of objects
// from which labels are made.
const maxLabel = 63

// Labels are those of an object of a benchmark's execution.
func Labels(b *v1alpha1.DBBenchmark, execution, purpose string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "dbbench",
		"app.kubernetes.io/instance":   Shorten(b.Name, maxLabel),
		"app.kubernetes.io/component":  purpose,
		"app.kubernetes.io/part-of":    "dbbench",
		"app.kubernetes.io/managed-by": "dbbench-manager",
		LabelBenchmark:                 Shorten(b.Name, maxLabel),
		LabelUID:                       string(b.UID),
		LabelExecution:                 execution,
		LabelPurpose:                   purpose,
	}
}

// JobName names the Job of a run. Pods add six characters to it, and a label holds it.
func JobName(b *v1alpha1.DBBenchmark, execution, run string) string {
	return join(b.Name, execution+"-"+run, maxLabel-6)
}

// ResultsName names a shard of an execution's results.
func ResultsName(b *v1alpha1.DBBenchmark, execution string, shard int) string {
	return join(b.Name, fmt.Sprintf("results-%s-%d", execution, shard), 253)
}

// join puts a suffix to a benchmark's name, and cuts the whole where it is too long.
// A dot would make a Job's name unfit for the host names of its pods.
func join(name, suffix string, limit int) string {
	return Shorten(strings.ReplaceAll(name, ".", "-")+"-"+suffix, limit)
}

// Shorten cuts a text that is longer than limit and ends it with a digest of the
// whole, so that different texts stay different.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.TrimRight(text[:limit-9], "-._") + "-" + digest(text)[:8]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Address is where a target's server is, as a pod of the namespace reaches it.
func Address(namespace string, t v1alpha1.Target) (host string, port int32) {
	const standard = 3306
	if t.ServiceRef != nil {
		host, port = t.ServiceRef.Name+"."+namespace+".svc", t.ServiceRef.Port
	} else {
		host, port = t.Host, t.Port
	}
	if port == 0 {
		port = standard
	}
	return host, port
}

// ServerKeys identify the servers of a benchmark's targets, sorted, each once.
func ServerKeys(b *v1alpha1.DBBenchmark) []string {
	var keys []string
	for _, t := range b.Spec.Targets {
		keys = append(keys, ServerKey(b.Namespace, t))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// ServerKey identifies a database server in any spelling of its address, as the value
// of LabelServer.
func ServerKey(namespace string, t v1alpha1.Target) string {
	host, port := Address(namespace, t)
	return digest(normalise(namespace, host) + ":" + strconv.Itoa(int(port)))[:16]
}

// normalise gives the names of a Service one spelling: name.namespace.svc. Other names
// of one or two parts get the same form, which is wrong as a name but right as a key.
func normalise(namespace, host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	host = strings.TrimSuffix(host, ".cluster.local")
	switch parts := strings.Split(host, "."); {
	case len(parts) == 1:
		return host + "." + namespace + ".svc"
	case len(parts) == 2:
		return host + ".svc"
	}
	return host
}
