//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dbbench.dev/operator/runner/contract"
)

func TestEstimate(t *testing.T) {
	second := contract.Duration(time.Second)
	for _, c := range []struct {
		name    string
		load    contract.Load
		want    time.Duration
		assumed bool
	}{
		{"nothing known", contract.Load{Clients: 4}, 0, false},
		{"duration", contract.Load{Clients: 4, Duration: 30 * second}, 30 * time.Second, false},
		{"warm-up is added", contract.Load{Clients: 4, Duration: 30 * second, Warmup: 5 * second}, 35 * time.Second, false},
		{"events", contract.Load{Clients: 4, Events: 2000}, 2 * time.Second, true},
		{"events of each client", contract.Load{Clients: 4, EventsPerClient: 1000}, 4 * time.Second, true},
		{"the fewer of both", contract.Load{Clients: 4, EventsPerClient: 1000, Events: 500}, 500 * time.Millisecond, true},
		{"rate", contract.Load{Clients: 4, Events: 2000, Rate: 100}, 20 * time.Second, false},
		{"duration comes first", contract.Load{Clients: 4, Events: 1e9, Duration: second}, time.Second, false},
		{"events come first", contract.Load{Clients: 4, Events: 1000, Duration: 60 * second}, time.Second, true},
	} {
		takes, assumed := estimate(c.load, 1000)
		if takes != c.want || assumed != c.assumed {
			t.Errorf("%s: %s, assumed %v; want %s, %v", c.name, takes, assumed, c.want, c.assumed)
		}
	}
}

func TestProgressOnTerminal(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, func() int { return 80 }, []string{"a", "b"})
	run := state{name: "nightly", reason: "Running", runs: 6, total: 12, fraction: 0.5, rate: "1234.5", p99: 12345 * time.Microsecond}
	p.show("a", run)
	p.show("b", state{name: "a-benchmark-with-a-name-that-is-quite-long", reason: "Waiting", message: "for the controller"})
	run.reason, run.message, run.fraction, run.runs, run.rate, run.p99 = "Complete", "all 12 runs succeeded", 1, 12, "", 0
	p.show("a", run)
	golden(t, "bars", strings.ReplaceAll(strings.ReplaceAll(out.String(), "\x1b", "<ESC>"), "\r", "<CR>"))
	for line := range strings.Lines(out.String()) {
		line = line[strings.LastIndex(line, "\x1b[K")+len("\x1b[K"):]
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 79 {
			t.Errorf("%d characters: %q", n, line)
		}
	}
}

func TestP99Text(t *testing.T) {
	for micros, want := range map[time.Duration]string{0: "", 7: "7µs", 999: "999µs", 1234: "1.23ms", 12345: "12.3ms", 123456: "123ms", 2345678: "2.35s"} {
		if got := (state{p99: micros * time.Microsecond}).p99Text(); got != want {
			t.Errorf("%d µs: %q, want %q", micros, got, want)
		}
	}
}

func TestReadDefaults(t *testing.T) {
	path := secretFile(t, "my.cnf", `# a comment
[mysqld]
port=1
[client]
user = bench   # and another
password="a#b\\c"
ssl_ca=/etc/ca.pem
skip-something
[mysqldump]
user=dump
`)
	got, err := readDefaults(path)
	want := map[string]string{"user": "bench", "password": `a#b\c`, "ssl-ca": "/etc/ca.pem"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for text, says := range map[string]string{"[client\n": ":1: the name of the group has no end", "[client]\n!include x\n": ":2: !include is not followed"} {
		if _, err := readDefaults(secretFile(t, "my.cnf", text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSplitAddress(t *testing.T) {
	for text, want := range map[string]contract.Target{
		"db":           {Host: "db", Port: 3306},
		"db:3307":      {Host: "db", Port: 3307},
		"127.0.0.1:99": {Host: "127.0.0.1", Port: 99},
		"::1":          {Host: "::1", Port: 3306},
		"[::1]:3307":   {Host: "::1", Port: 3307},
	} {
		got, err := splitAddress(text, "3306")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{":3306", "db:port", "db:99999"} {
		if got, err := splitAddress(text, "3306"); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestPickFor(t *testing.T) {
	names := map[string]bool{"a": true, "b": true}
	values := []string{"general", "a=own", "path/with=sign"}
	for target, want := range map[string]string{"a": "own", "b": "path/with=sign"} {
		if got := pickFor(target, names, values); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}
