//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/test/cluster"
)

func target(change string) string {
	fields := map[string]string{"name": "mariadb", "host": "mariadb." + serverNamespace + ".svc", "database": "e2e", "credentialsSecretRef": "{name: mariadb-bench}"}
	key, value, _ := strings.Cut(change, ": ")
	fields[key] = value
	var parts []string
	for k, v := range fields {
		parts = append(parts, k+": "+v)
	}
	return "[{" + strings.Join(parts, ", ") + "}]"
}

// TestFailures gives the operator what cannot work: each ends within a minute in a
// condition that names the cause and the way out.
func TestFailures(t *testing.T) {
	if err := kube.Apply(t.Context(), secret("wrong-password", "not-the-password"), "-n", namespace); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change map[string]string
		reason string
		says   string
	}{
		{"wrong-password", map[string]string{"targets": target("credentialsSecretRef: {name: wrong-password}")}, "AuthenticationFailed", "1045"},
		{"missing-secret", map[string]string{"targets": target("credentialsSecretRef: {name: nobody}")}, "SecretNotFound", "nobody"},
		{"missing-key", map[string]string{"targets": target("credentialsSecretRef: {name: mariadb-bench, passwordKey: nokey}")}, "SecretNotFound", "nokey"},
		{"unknown-host", map[string]string{"targets": target("host: nowhere.invalid")}, "TargetUnreachable", "nowhere.invalid"},
		{"refused", map[string]string{"targets": target("port: 3999")}, "TargetUnreachable", "3999"},
		{"unknown-engine", map[string]string{"workload": "{slap: {engine: NoSuchEngine, autoIncrement: true}}"}, "PreflightFailed", "workload.slap.engine"},
		{"unknown-axis", map[string]string{"sweep": "{axes: [{path: load.clientz, values: [1]}]}"}, "InvalidSpec", "spec.sweep.axes[0]"},
		{"axis-of-words", map[string]string{"sweep": "{axes: [{path: load.clients, values: [many]}]}"}, "InvalidSpec", "spec.sweep.axes[0].values[0]"},
		{"axis-of-zero", map[string]string{"sweep": "{axes: [{path: load.clients, values: [1, 0]}]}"}, "InvalidSpec", "load.clients"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := "fails-" + tc.name
			key := apply(t, name, benchmark(name, tc.change))
			b := waitFor(t, key, time.Minute, "failed", cluster.Failed)
			failed := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionFailed)
			if failed.Reason != tc.reason || !strings.Contains(failed.Message, tc.says) {
				t.Errorf("Failed: %s: %s\nwant %s and %q", failed.Reason, failed.Message, tc.reason, tc.says)
			}
			if strings.Contains(fmt.Sprint(b.Status), "not-the-password") {
				t.Error("the status holds the password")
			}
			t.Logf("%s: %s", failed.Reason, failed.Message)
		})
	}
}

// TestRefused gives the API server what admission must refuse.
func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change map[string]string
		says   string
	}{
		{"zero-clients", map[string]string{"load": "{clients: 0}"}, "spec.load.clients"},
		{"words-for-clients", map[string]string{"load": "{clients: many}"}, "spec.load.clients"},
		{"two-workloads", map[string]string{"workload": "{slap: {}, oltp: {}}"}, "exactly one of slap"},
		{"no-workload", map[string]string{"workload": "{}"}, "exactly one of slap"},
		{"host-and-service", map[string]string{"targets": target("serviceRef: {name: mariadb}")}, "exactly one of host and serviceRef"},
		{"unknown-field", map[string]string{"sweeps": "{}"}, "sweeps"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := kube.KubectlIn(t.Context(), benchmark("refused-"+tc.name, tc.change), "-n", namespace, "create", "-f", "-", "--validate=strict")
			if err == nil {
				apply(t, "refused-"+tc.name, benchmark("refused-"+tc.name, nil))
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v\ndoes not say %q", err, tc.says)
			}
		})
	}
}
