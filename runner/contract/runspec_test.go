package contract

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func testSpec() RunSpec {
	seed := int64(7)
	return RunSpec{
		Version: RunSpecVersion, Run: testRun,
		Target: Target{Name: "mariadb", Host: "db", Port: 3306, Database: "dbbench", UsernameFile: "/c/username",
			PasswordFile: "/c/password", TLS: TLS{Mode: TLSPreferred}, SessionVariables: map[string]string{"sql_mode": ""}},
		Workload: Workload{Slap: &Slap{LoadType: SlapWrite, IntColumns: 1, CharColumns: 1, UniqueQueries: 10, UniqueWrites: 10,
			PreloadRows: 100, ExactCounts: true, TimingIncludesConnect: true, Seed: &seed}},
		Load:    Load{Clients: 10, EventsPerClient: 1000, Warmup: Duration(10 * time.Second)},
		Prepare: PreparePerRun, Cleanup: CleanupAlways, Replicas: 1,
		Timeout: Duration(time.Hour), ProgressInterval: Duration(5 * time.Second),
	}
}

func TestRunSpecRoundTrip(t *testing.T) {
	want := testSpec()
	b, err := EncodeRunSpec(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeRunSpec(b)
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestDecodeRunSpecRefuses(t *testing.T) {
	b, err := EncodeRunSpec(testSpec())
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	for _, tt := range []struct{ name, old, new, want string }{
		{"another version", RunSpecVersion, "dbbench.dev/run/v9", "release"},
		{"unknown field", `"clients"`, `"klients"`, "klients"},
		{"text for a number", `"clients": 10`, `"clients": "many"`, "clients"},
		{"a number for a duration", `"1h0m0s"`, `3600`, "10s"},
	} {
		_, err := DecodeRunSpec([]byte(strings.Replace(good, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error that speaks of %q", tt.name, err, tt.want)
		}
	}
	if _, err := DecodeRunSpec([]byte(good + "{}")); err == nil {
		t.Error("trailing data was accepted")
	}
}

func TestRunSpecValidate(t *testing.T) {
	for _, tt := range []struct {
		want   string // part of the message; "" is valid
		change func(*RunSpec)
	}{
		{"", func(*RunSpec) {}},
		{"", func(s *RunSpec) { s.Target.Host, s.Target.Port, s.Target.Socket = "", 0, "/run/s" }},
		{"run.id", func(s *RunSpec) { s.Run.ID = "" }},
		{"run.namespace", func(s *RunSpec) { s.Run.Namespace = "a'b" }},
		{"run.benchmarkUID", func(s *RunSpec) { s.Run.BenchmarkUID = "" }},
		{"host and socket", func(s *RunSpec) { s.Target.Host = "" }},
		{"target.port", func(s *RunSpec) { s.Target.Port = 0 }},
		{"target.database", func(s *RunSpec) { s.Target.Database = "a`b" }},
		{"system database", func(s *RunSpec) { s.Target.Database = "MySQL" }},
		{"usernameFile", func(s *RunSpec) { s.Target.UsernameFile = "" }},
		{"sessionVariables", func(s *RunSpec) { s.Target.SessionVariables = map[string]string{"a=1, b": "1"} }},
		{"tls.mode", func(s *RunSpec) { s.Target.TLS.Mode = "Maybe" }},
		{"caSecretRef", func(s *RunSpec) { s.Target.TLS.Mode = TLSVerifyCA }},
		{"certFile and keyFile", func(s *RunSpec) { s.Target.TLS.CertFile = "x" }},
		{"load.clients", func(s *RunSpec) { s.Load.Clients = 0 }},
		{"load.eventsPerClient", func(s *RunSpec) { s.Load.EventsPerClient = -1 }},
		{"load.events", func(s *RunSpec) { s.Load.Events = -1 }},
		{"load.duration", func(s *RunSpec) { s.Load.Duration = -1 }},
		{"load.warmup", func(s *RunSpec) { s.Load.Warmup = -1 }},
		{"load.arrivals", func(s *RunSpec) { s.Load.Arrivals = "Bursts" }},
		{"prepare", func(s *RunSpec) { s.Prepare = "Later" }},
		{"cleanup", func(s *RunSpec) { s.Cleanup = "" }},
		{"replicas is 0", func(s *RunSpec) { s.Replicas = 0 }},
		{"must not exceed load.clients", func(s *RunSpec) { s.Replicas = 11 }},
		{"runTimeout", func(s *RunSpec) { s.Timeout = 0 }},
		{"progressInterval", func(s *RunSpec) { s.ProgressInterval = 0 }},
		{"workload: exactly one", func(s *RunSpec) { s.Workload.Slap = nil }},
		{"loadType", func(s *RunSpec) { s.Workload.Slap.LoadType = "write" }},
		{"engine", func(s *RunSpec) { s.Workload.Slap.Engine = "InnoDB; DROP" }},
		{"exclude each other", func(s *RunSpec) { s.Workload.Slap.AutoIncrement, s.Workload.Slap.GUIDPrimary = true, true }},
		{"Key needs", func(s *RunSpec) { s.Workload.Slap.LoadType = SlapKey }},
		{"there must be a column", func(s *RunSpec) { s.Workload.Slap.IntColumns, s.Workload.Slap.CharColumns = 0, 0 }},
		{"uniqueQueries", func(s *RunSpec) { s.Workload.Slap.UniqueQueries = 0 }},
		{"MiB of statements", func(s *RunSpec) { s.Workload.Slap.CharColumns, s.Workload.Slap.UniqueWrites = 900, 90000 }},
		{"preloadRows", func(s *RunSpec) { s.Workload.Slap.PreloadRows = -1 }},
		{"commitEvery", func(s *RunSpec) { s.Workload.Slap.CommitEvery = -1 }},
	} {
		s := testSpec()
		tt.change(&s)
		err := s.Validate()
		if tt.want == "" {
			if err != nil {
				t.Errorf("valid spec: %v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want an error that speaks of %q", err, tt.want)
		}
	}
}
