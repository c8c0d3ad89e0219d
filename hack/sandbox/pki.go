package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// validity of the certificates; a sandbox lives for less.
const validity = 365 * 24 * time.Hour

// authority signs the sandbox's certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// makePKI writes the certificates and kubeconfigs, unless they are there.
func (s *sandbox) makePKI() error {
	if _, err := os.Stat(s.kubeconfig()); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.in("pki"), 0o700); err != nil {
		return err
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	if err := writePEM(s.pki("ca.crt"), "CERTIFICATE", ca.cert.Raw); err != nil {
		return err
	}
	for _, c := range []struct {
		file    string
		subject pkix.Name
	}{
		{"apiserver", pkix.Name{CommonName: "kube-apiserver"}},
		{"admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}},
		{"node", pkix.Name{CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}}},
	} {
		if err := s.issue(ca, c.file, c.subject); err != nil {
			return err
		}
	}
	if err := s.serviceAccountKey(); err != nil {
		return err
	}
	if err := s.writeKubeconfig(s.in("node.kubeconfig"), "node"); err != nil {
		return err
	}
	return s.writeKubeconfig(s.kubeconfig(), "admin")
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate(pkix.Name{CommonName: "dbbench-sandbox"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(raw)
	return &authority{cert, key}, err
}

func certificate(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
	}
}

func (s *sandbox) issue(ca *authority, file string, subject pkix.Name) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate(subject)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(nodeIP), net.ParseIP(apiIP)}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return err
	}
	if err := writePEM(s.pki(file+".crt"), "CERTIFICATE", raw); err != nil {
		return err
	}
	return writeKey(s.pki(file+".key"), key)
}

func (s *sandbox) serviceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(s.pki("sa.pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(s.pki("sa.key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", raw)
}

func writePEM(path, kind string, raw []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600)
}

func (s *sandbox) writeKubeconfig(path, user string) error {
	return os.WriteFile(path, s.kubeconfigOf(user), 0o600)
}

// kubeconfigOf is the kubeconfig of a user that has a certificate.
func (s *sandbox) kubeconfigOf(user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster: {server: "https://%s:%d", certificate-authority: %q}
users:
- name: %s
  user: {client-certificate: %q, client-key: %q}
contexts:
- name: sandbox
  context: {cluster: sandbox, user: %s}
current-context: sandbox
`, nodeIP, apiPort, s.pki("ca.crt"), user, s.pki(user+".crt"), s.pki(user+".key"), user)
}
