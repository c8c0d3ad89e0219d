//go:build linux

package mysql

import (
	"os"
	"strings"
	"testing"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// as changes the account of a target.
func as(t *testing.T, to contract.Target, user, password string) contract.Target {
	t.Helper()
	for path, text := range map[string]string{to.UsernameFile: user, to.PasswordFile: password} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestDialectAuthentication: the plugins of both flavours, over TLS and in the clear, with
// the right password and a wrong one.
func TestDialectAuthentication(t *testing.T) {
	for _, tt := range []struct {
		server  string
		options []string
		users   map[string]string // by plugin: what follows IDENTIFIED
	}{
		{mariadb.MySQL9, nil, map[string]string{
			"caching_sha2_password": "WITH caching_sha2_password BY '%s'",
		}},
		{mariadb.MariaDB1011, []string{"--plugin-load-add=auth_ed25519"}, map[string]string{
			"ed25519": "VIA ed25519 USING PASSWORD('%s')", "mysql_native_password": "BY '%s'",
		}},
		{mariadb.MariaDB118, []string{"--plugin-load-add=auth_ed25519"}, map[string]string{
			"ed25519": "VIA ed25519 USING PASSWORD('%s')", "mysql_native_password": "BY '%s'",
		}},
	} {
		t.Run(tt.server, func(t *testing.T) {
			ca, cert, key := mariadb.Certificates(t, "db.example")
			options := append(tt.options, "--ssl-ca="+ca, "--ssl-cert="+cert, "--ssl-key="+key)
			server := mariadb.StartUnpacked(t, tt.server, options...)
			for plugin, identified := range tt.users {
				server.Exec(t, "CREATE USER "+plugin+"@'%' IDENTIFIED "+strings.ReplaceAll(identified, "%s", "rïght"))
				for _, mode := range []contract.TLSMode{contract.TLSDisabled, contract.TLSRequired} {
					to := target(t, server)
					to.TLS.Mode = mode
					// A wrong password first: MySQL has nothing in its cache then.
					_, err := open(t, as(t, to, plugin, "wrong"), SessionOptions{})
					if f := FailureOf(err, contract.ClassRunnerError); err == nil || f.Class != contract.ClassAuthenticationFailed || f.MySQLError != 1045 {
						t.Errorf("%s, TLS %s, wrong password: %v", plugin, mode, err)
					}
					server.Exec(t, "FLUSH PRIVILEGES") // empties the cache
					for _, when := range []string{"first", "second"} {
						s, err := open(t, as(t, to, plugin, "rïght"), SessionOptions{})
						if err != nil {
							t.Errorf("%s, TLS %s, %s connection: %v", plugin, mode, when, err)
							continue
						}
						rows, err := s.table("SELECT CURRENT_USER()")
						if err != nil || rows[0][0] != plugin+"@%" {
							t.Errorf("%s, TLS %s: %v, %v", plugin, mode, rows, err)
						}
					}
				}
			}
		})
	}
}

// TestDialectUnknownPlugin: what the runner does not speak is said by name.
func TestDialectUnknownPlugin(t *testing.T) {
	server := mariadb.StartUnpacked(t, mariadb.MariaDB118, "--plugin-load-add=auth_parsec")
	server.Exec(t, "CREATE USER modern@'%' IDENTIFIED VIA parsec USING PASSWORD('secret')")
	_, err := open(t, as(t, target(t, server), "modern", "secret"), SessionOptions{})
	f := FailureOf(err, contract.ClassRunnerError)
	if err == nil || f.Class != contract.ClassAuthenticationFailed || !strings.Contains(f.Hint, "ed25519") {
		t.Errorf("got %+v", f)
	}
}

// TestDialectTLS: all modes against each server, and servers that refuse what is not
// encrypted.
func TestDialectTLS(t *testing.T) {
	for _, name := range []string{mariadb.MySQL9, mariadb.MariaDB1011, mariadb.MariaDB118} {
		t.Run(name, func(t *testing.T) {
			ca, cert, key := mariadb.Certificates(t, "db.example")
			otherCA, _, _ := mariadb.Certificates(t, "db.example")
			server := mariadb.StartUnpacked(t, name, "--ssl-ca="+ca, "--ssl-cert="+cert, "--ssl-key="+key)
			for _, tt := range []struct {
				tls      contract.TLS
				required bool // by the server
				cipher   bool
				fails    string // part of the failure
			}{
				{contract.TLS{Mode: contract.TLSDisabled}, false, false, ""},
				{contract.TLS{Mode: contract.TLSPreferred}, false, true, ""},
				{contract.TLS{Mode: contract.TLSRequired}, false, true, ""},
				{contract.TLS{Mode: contract.TLSVerifyCA, CAFile: ca}, false, true, ""},
				{contract.TLS{Mode: contract.TLSVerifyCA, CAFile: otherCA}, false, false, "caSecretRef"},
				{contract.TLS{Mode: contract.TLSVerifyIdentity, CAFile: ca}, false, false, "serverName"},
				{contract.TLS{Mode: contract.TLSVerifyIdentity, CAFile: ca, ServerName: "db.example"}, false, true, ""},
				{contract.TLS{Mode: contract.TLSDisabled}, true, false, "Required or stricter"},
				{contract.TLS{Mode: contract.TLSPreferred}, true, true, ""},
				{contract.TLS{Mode: contract.TLSVerifyIdentity, CAFile: ca, ServerName: "db.example"}, true, true, ""},
			} {
				if tt.required {
					server.Exec(t, "SET GLOBAL require_secure_transport = ON")
				}
				to := target(t, server)
				to.TLS = tt.tls
				s, err := open(t, to, SessionOptions{})
				switch {
				case tt.fails != "":
					f := FailureOf(err, contract.ClassRunnerError)
					// MariaDB before 11 says no more than that access is denied.
					denied := tt.required && name == mariadb.MariaDB1011 && f.MySQLError == 1045 && strings.Contains(f.Hint, "tls.mode")
					if err == nil || !denied && (f.Class != contract.ClassTLSFailed || !strings.Contains(f.Error(), tt.fails)) {
						t.Errorf("%s, required %v: got %+v, want %q", tt.tls.Mode, tt.required, f, tt.fails)
					}
				case err != nil:
					t.Errorf("%s, required %v: %v", tt.tls.Mode, tt.required, err)
				default:
					rows, err := s.table("SHOW STATUS LIKE 'Ssl_cipher'")
					if err != nil || (rows[0][1] != "") != tt.cipher {
						t.Errorf("%s, required %v: cipher %v, %v", tt.tls.Mode, tt.required, rows, err)
					}
				}
			}
		})
	}
}

// TestDialectPreflight: what each server calls a limit, and what it says where one is met.
func TestDialectPreflight(t *testing.T) {
	for _, tt := range []struct {
		server, option string
		change         func(*Demand)
		want           string
	}{
		{mariadb.MySQL9, "--disabled-storage-engines=MyISAM,MEMORY", func(d *Demand) { d.Engines = []string{"myisam"} }, "disabled_storage_engines is MyISAM,MEMORY"},
		{mariadb.MySQL9, "--sql-require-primary-key=ON", func(d *Demand) { d.NoPrimaryKey = true }, "sql_require_primary_key is ON"},
		{mariadb.MySQL9, "--super-read-only=ON", func(*Demand) {}, "read_only is ON"},
		{mariadb.MySQL9, "--transaction-read-only=ON", func(*Demand) {}, "transaction_read_only is ON"},
		{mariadb.MySQL9, "--max-prepared-stmt-count=5", func(d *Demand) { d.Statements = 6 }, "max_prepared_stmt_count is 5"},
		{mariadb.MariaDB118, "--innodb-force-primary-key=ON", func(d *Demand) { d.NoPrimaryKey = true }, "innodb_force_primary_key is ON"},
		{mariadb.MariaDB118, "--read-only=ON", func(*Demand) {}, "read_only is"},
		{mariadb.MariaDB118, "--enforce-storage-engine=Aria", func(d *Demand) { d.Engines = []string{"InnoDB"} }, "enforce_storage_engine"},
	} {
		t.Run(tt.server+" "+tt.option, func(t *testing.T) {
			server := mariadb.StartUnpacked(t, tt.server)
			// Set while it runs: the account that tests use is made before.
			name, value, _ := strings.Cut(strings.TrimPrefix(tt.option, "--"), "=")
			variable := strings.ReplaceAll(name, "-", "_")
			if _, err := server.Root.Exec("SET GLOBAL " + variable + " = " + quoteText(value)); err != nil {
				server = mariadb.StartUnpacked(t, tt.server, tt.option) // not one that can be set
			}
			s := mustOpen(t, target(t, server), SessionOptions{})
			found, err := Inspect(s)
			if err != nil {
				t.Fatal(err)
			}
			d := Demand{Clients: 1, Replicas: 1}
			d.Sessions = 1
			if f := found.Check(d); f != nil && !strings.Contains(tt.option, "read-only") {
				t.Errorf("refuses what is possible: %v", f)
			}
			tt.change(&d)
			if f := found.Check(d); f == nil || !strings.Contains(f.Message, tt.want) || f.Hint == "" {
				t.Errorf("got %+v, want %q", f, tt.want)
			}
		})
	}
}

// TestDialectDisabledEngine: the server's own words, where somebody disabled the engine
// after preflight.
func TestDialectDisabledEngine(t *testing.T) {
	server := mariadb.StartUnpacked(t, mariadb.MySQL9, "--disabled-storage-engines=MyISAM")
	server.Exec(t, "CREATE DATABASE d")
	s := mustOpen(t, target(t, server), SessionOptions{})
	_, err := s.Exec("CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE = MyISAM")
	if f := FailureOf(err, contract.ClassPrepareFailed); f.MySQLError != 3161 || !strings.Contains(f.Hint, "disabled_storage_engines") {
		t.Errorf("got %+v", f)
	}
}

func TestDialectSocket(t *testing.T) {
	for _, name := range []string{mariadb.MySQL9, mariadb.MariaDB118} {
		t.Run(name, func(t *testing.T) {
			server := mariadb.StartUnpacked(t, name, "--skip-networking")
			to := target(t, server)
			to.Host, to.Port, to.Socket = "", 0, server.Socket
			rows, err := mustOpen(t, to, SessionOptions{Transport: Transport{Blocking: true}}).table("SELECT 1")
			if err != nil || rows[0][0] != "1" {
				t.Errorf("%v, %v", rows, err)
			}
		})
	}
}
