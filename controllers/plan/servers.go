package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"strings"

	"dbbench.dev/operator/api/v1alpha1"
)

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

// ServerKey identifies a database server in any spelling of its address. It is fit for
// the value of a label.
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

// checkTargets sees that each target is a database of its own: two that share one would
// write into each other's tables.
func checkTargets(targets []v1alpha1.Target) error {
	seen := map[string]string{}
	for i, t := range targets {
		key := ServerKey("", t) + "/" + t.Database
		if other, ok := seen[key]; ok {
			return invalid("spec.targets["+strconv.Itoa(i)+"].database", "the target %s has the same server and database as %s; give it another database", t.Name, other)
		}
		seen[key] = t.Name
	}
	return nil
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
