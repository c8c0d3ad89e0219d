//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/test/cluster"
)

// TestCanary runs a benchmark to its end and lets others fail, and looks for their
// secrets in all that a namespace shows to somebody who may not read Secrets.
func TestCanary(t *testing.T) {
	certificate, key := clientCertificate(t)
	tls := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: canary-tls}\nstringData: {tls.crt: %q, tls.key: %q, ca.crt: %q}\n", certificate, key, key)
	for _, manifest := range []string{tls, secret("canary-wrong", password+"-not")} {
		if err := kube.Apply(t.Context(), manifest, "-n", namespace); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_, _ = kube.Kubectl(context.Background(), "-n", namespace, "delete", "secret", "canary-wrong", "canary-tls", "--ignore-not-found")
	})
	// A server that quotes the password in an error.
	sql(t, "CREATE DATABASE IF NOT EXISTS leak; CREATE OR REPLACE PROCEDURE leak.leak() SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'your password is "+password+", is it not?'")

	var logs strings.Builder
	for name, change := range map[string]map[string]string{
		"canary-runs":  {"targets": target("tls: {mode: Preferred, clientSecretRef: {name: canary-tls}}")},
		"canary-wrong": {"targets": target("credentialsSecretRef: {name: canary-wrong}")},
		"canary-tls":   {"targets": target("tls: {mode: VerifyCA, caSecretRef: {name: canary-tls}}")},
		"canary-echo":  {"workload": "{sql: {pre: CALL leak.leak(), statements: [{name: one, sql: SELECT 1}]}}"},
	} {
		bench := apply(t, name, benchmark(name, change))
		ended := waitFor(t, bench, 2*time.Minute, "ended", func(b *v1alpha1.DBBenchmark) bool {
			text, _ := kube.Kubectl(t.Context(), "-n", namespace, "logs", "-l", "dbbench.dev/benchmark="+name, "--tail=-1") // there may be none yet
			logs.WriteString(text)
			return cluster.Ended(b)
		})
		t.Log(cluster.Progress(ended))
		if wants := name == "canary-runs"; wants != cluster.Complete(ended) {
			t.Errorf("%s: complete is %v, want %v", name, !wants, wants)
		}
	}
	seen := look(t)
	seen["the runners' logs"] = logs.String()
	for what, secret := range map[string]string{
		"the password": password, "the password in base64": base64.StdEncoding.EncodeToString([]byte(password)),
		"the private key": strings.Split(key, "\n")[1], "the private key's armour": "PRIVATE KEY",
	} {
		for where, text := range seen {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s is in %s, after: %q", what, where, text[max(0, at-150):at])
			}
		}
	}
	// What was looked through is what it should be.
	for where, text := range map[string]string{"configmaps": "canary-runs-results", "dbbenchmarks": "your password is [hidden], is it not?", "events": "AuthenticationFailed", "the runners' logs": `"kind":"start"`} {
		if !strings.Contains(seen[where], text) {
			t.Errorf("%q is not in %s", text, where)
		}
	}
}

// look reads what may be shown, by what it is.
func look(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	read := func(what string, args ...string) {
		text, err := kube.Kubectl(t.Context(), args...)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		seen[what] = text
	}
	for _, kind := range []string{"dbbenchmarks", "jobs", "pods", "configmaps", "events", "services"} {
		read(kind, "-n", namespace, "get", kind, "-o", "yaml", "--show-managed-fields")
	}
	read("the manager's log", "-n", cluster.Namespace, "logs", "deployment/dbbench-manager", "--tail=-1")
	return seen
}

// clientCertificate makes a certificate and its key, in PEM.
func clientCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "canary"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}
