package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/runner/contract"
)

// servers says for each target of a benchmark where it is and who to connect as. Files
// that must be made for that are made in dir.
func (o *localOptions) servers(b *v1alpha1.DBBenchmark, dir string) (map[string]contract.Target, error) {
	names := map[string]bool{}
	for _, t := range b.Spec.Targets {
		names[t.Name] = true
	}
	servers := map[string]contract.Target{}
	for _, t := range b.Spec.Targets {
		pick := func(values []string) string { return pickFor(t.Name, names, values) }
		defaults, err := readDefaults(pick(o.defaultsFiles))
		if err != nil {
			return nil, err
		}
		server, err := o.address(t, pick, defaults)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		if err := o.setTLS(&server, t, pick, defaults); err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		if err := o.setCredentials(&server, pick, defaults, filepath.Join(dir, b.Name+"-"+t.Name)); err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		servers[t.Name] = server
	}
	return servers, nil
}

// pickFor is the value that is meant for a target: the last TARGET=VALUE with its name,
// else the last without a name.
func pickFor(target string, names map[string]bool, values []string) string {
	general, own := "", ""
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		switch {
		case ok && name == target:
			own = value
		case !ok || !names[name]:
			general = v
		}
	}
	return cmp.Or(own, general)
}

// address is where a server is: as the flags say, else the option file, else the spec.
func (o *localOptions) address(t v1alpha1.Target, pick func([]string) string, defaults map[string]string) (contract.Target, error) {
	host, socket := pick(o.hosts), pick(o.sockets)
	switch {
	case host != "" && socket != "":
		return contract.Target{}, usageError("--host and --socket exclude each other")
	case socket != "":
		return contract.Target{Socket: socket}, nil
	case host != "":
		return splitAddress(host, cmp.Or(defaults["port"], portOf(t)))
	// As MySQL's programs have it, localhost is the socket.
	case defaults["socket"] != "" && (defaults["host"] == "" || defaults["host"] == "localhost"):
		return contract.Target{Socket: defaults["socket"]}, nil
	case defaults["host"] != "":
		return splitAddress(defaults["host"], cmp.Or(defaults["port"], portOf(t)))
	case t.ServiceRef != nil:
		return contract.Target{}, usageError("the spec names the Service %s of a cluster: say with --host %s=HOST:PORT where it is from here", t.ServiceRef.Name, t.Name)
	}
	return splitAddress(t.Host, portOf(t))
}

func portOf(t v1alpha1.Target) string {
	_, port := plan.Address("", t)
	return strconv.Itoa(int(port))
}

func splitAddress(address, standard string) (contract.Target, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), standard
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" {
		return contract.Target{}, usageError("%q is no address: write HOST or HOST:PORT", address)
	}
	return contract.Target{Host: host, Port: int32(number)}, nil
}

func (o *localOptions) setTLS(server *contract.Target, t v1alpha1.Target, pick func([]string) string, defaults map[string]string) error {
	server.TLS = contract.TLS{
		CAFile:   cmp.Or(pick(o.cas), defaults["ssl-ca"]),
		CertFile: cmp.Or(pick(o.certs), defaults["ssl-cert"]),
		KeyFile:  cmp.Or(pick(o.keys), defaults["ssl-key"]),
	}
	switch {
	case t.TLS.CASecretRef != nil && server.TLS.CAFile == "":
		return usageError("tls.caSecretRef names the Secret %s of a cluster: give its certificate with --ssl-ca", t.TLS.CASecretRef.Name)
	case t.TLS.ClientSecretRef != nil && server.TLS.CertFile == "":
		return usageError("tls.clientSecretRef names the Secret %s of a cluster: give its files with --ssl-cert and --ssl-key", t.TLS.ClientSecretRef.Name)
	}
	return nil
}

// setCredentials makes the files that the runner reads them from. A password file that
// was given is used as it is.
func (o *localOptions) setCredentials(server *contract.Target, pick func([]string) string, defaults map[string]string, dir string) error {
	username := cmp.Or(pick(o.usernames), defaults["user"])
	if username == "" {
		return usageError("say who to connect as: --username and --password-file, or --defaults-file")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	server.UsernameFile = filepath.Join(dir, contract.UsernameFile)
	server.PasswordFile = pick(o.passwordFiles)
	if server.PasswordFile == "" {
		server.PasswordFile = filepath.Join(dir, contract.PasswordFile)
		if err := os.WriteFile(server.PasswordFile, []byte(defaults["password"]), 0o600); err != nil {
			return err
		}
	} else if _, err := os.Stat(server.PasswordFile); err != nil {
		return err
	}
	return os.WriteFile(server.UsernameFile, []byte(username), 0o600)
}
