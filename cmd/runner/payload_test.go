//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// payloadSpec is a run of payload as a resource gives it that names the operation and
// asks for a checksum.
func payloadSpec(t *testing.T, s *mariadb.Server, operation string) contract.RunSpec {
	t.Helper()
	spec := slapSpec(t, s)
	spec.Workload = contract.Workload{Payload: &contract.Payload{
		Operation: operation, Size: 1 << 10, Lengths: contract.LengthsFixed, Rows: 1000, Engine: "InnoDB", KeyType: contract.KeyBigInt,
		Column: contract.ColumnAuto, Autocommit: true, CommitEvery: 100, Alphabet: contract.AlphabetBinary, Checksum: true,
	}}
	spec.Load = contract.Load{Clients: 4}
	spec.Cleanup = contract.CleanupNever
	return spec
}

func size(n contract.Size) *contract.Size { return &n }

func counts(r *contract.Record) map[string]int64 {
	out := map[string]int64{}
	for _, o := range r.Operations {
		out[o.Name] = o.Count
	}
	return out
}

// TestPayloadCells runs every operation, size and engine, and looks at what the server
// holds then.
func TestPayloadCells(t *testing.T) {
	server := mariadb.Start(t)
	for _, tt := range []struct {
		name      string
		operation string
		change    func(*contract.Payload)
		want      map[string]int64
		length    int64 // of all values at the end
		column    string
	}{
		{"insert 1 B", contract.PayloadInsert, func(p *contract.Payload) { p.Size = 1 }, map[string]int64{"insert": 1000}, 1, "blob"},
		{"insert 1 KiB, MyISAM", contract.PayloadInsert, func(p *contract.Payload) { p.Engine = "MyISAM" }, map[string]int64{"insert": 1000}, 1 << 10, "blob"},
		{"insert with commits", contract.PayloadInsert, func(p *contract.Payload) { p.Autocommit, p.CommitEvery = false, 100 },
			map[string]int64{"insert": 1000, "commit": 4 * 3}, 1 << 10, "blob"},
		{"insert 1 MiB", contract.PayloadInsert, func(p *contract.Payload) { p.Size, p.Rows = 1<<20, 10 }, map[string]int64{"insert": 10}, 1 << 20, "mediumblob"},
		{"update 1 B to 1 B", contract.PayloadUpdate, func(p *contract.Payload) { p.Size = 1; p.Alphabet = contract.AlphabetDigits }, map[string]int64{"update": 1000}, 1, "blob"},
		{"update 1 B to 1 MiB, MyISAM", contract.PayloadUpdate, func(p *contract.Payload) { p.Size, p.ToSize, p.Rows, p.Engine = 1, size(1<<20), 10, "MyISAM" },
			map[string]int64{"update": 10}, 1 << 20, "mediumblob"},
		{"update all 1 B to 1 KiB", contract.PayloadUpdateAll, func(p *contract.Payload) { p.Size, p.ToSize = 1, size(1<<10) }, map[string]int64{"update-all": 1}, 1 << 10, "blob"},
		{"update all 1 KiB to 1 B, a table each", contract.PayloadUpdateAll, func(p *contract.Payload) { p.ToSize, p.TablePerClient = size(1), true },
			map[string]int64{"update-all": 4}, 1, ""},
		{"replace 1 KiB to 1 B", contract.PayloadReplace, func(p *contract.Payload) { p.ToSize = size(1) }, map[string]int64{"replace": 1000}, 1, "blob"},
		{"replace, long blob", contract.PayloadReplace, func(p *contract.Payload) { p.Column = contract.ColumnLongBlob }, map[string]int64{"replace": 1000}, 1 << 10, "longblob"},
		{"printable", contract.PayloadReplace, func(p *contract.Payload) { p.Column, p.Alphabet = contract.ColumnVarChar, contract.AlphabetPrintable },
			map[string]int64{"replace": 1000}, 1 << 10, "varchar(1024)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := payloadSpec(t, server, tt.operation)
			p := spec.Workload.Payload
			tt.change(p)
			r := mustSucceed(t, spec)
			checkCounts(t, r)
			if got := counts(r); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("operations %v, want %v", got, tt.want)
			}
			if got := r.Result.Checks; got["rows"] != fmt.Sprint(p.Rows) || len(got["contentSHA256"]) != 64 || got["unchanged"] != "" {
				t.Errorf("checks %v", got)
			}
			if !p.TablePerClient {
				rows := server.Rows(t, "SELECT COUNT(*), MIN(LENGTH(data)), MAX(LENGTH(data)), MIN(id), MAX(id) FROM dbbench.bench")
				if got, want := fmt.Sprint(rows[0]), fmt.Sprint([]int64{p.Rows, tt.length, tt.length, 0, p.Rows - 1}); got != want {
					t.Errorf("table %s, want %s", got, want)
				}
				create := strings.ToLower(server.Rows(t, "SHOW CREATE TABLE dbbench.bench")[0][1])
				if !strings.Contains(create, "`data` "+tt.column) || !strings.Contains(create, "engine="+strings.ToLower(p.Engine)) {
					t.Error(create)
				}
			}
		})
	}
}

// TestPayloadContent: what a pass leaves depends on the seed alone. It is the same for
// any number of clients and tables, for all engines and character sets, whether rows
// were inserted over a load or not, and another one for another seed.
func TestPayloadContent(t *testing.T) {
	server := mariadb.Start(t)
	digest := func(operation string, change func(*contract.RunSpec)) string {
		t.Helper()
		spec := payloadSpec(t, server, operation)
		p := spec.Workload.Payload
		p.Size, p.Lengths, p.Alphabet, p.Column, p.KeyType = 200, contract.LengthsUniform, contract.AlphabetDigits, contract.ColumnVarChar, contract.KeyInt
		change(&spec)
		return mustSucceed(t, spec).Result.Checks["contentSHA256"]
	}
	none := func(*contract.RunSpec) {}
	for _, operation := range []string{contract.PayloadInsert, contract.PayloadUpdate, contract.PayloadReplace} {
		want := digest(operation, none)
		for name, change := range map[string]func(*contract.RunSpec){
			"one client":         func(s *contract.RunSpec) { s.Load.Clients = 1 },
			"seven clients":      func(s *contract.RunSpec) { s.Load.Clients = 7 },
			"more than rows":     func(s *contract.RunSpec) { s.Load.Clients, s.Workload.Payload.Rows = 40, 1000 },
			"a table each":       func(s *contract.RunSpec) { s.Load.Clients, s.Workload.Payload.TablePerClient = 3, true },
			"MyISAM":             func(s *contract.RunSpec) { s.Workload.Payload.Engine = "MyISAM" },
			"blob":               func(s *contract.RunSpec) { s.Workload.Payload.Column = contract.ColumnBlob },
			"commits":            func(s *contract.RunSpec) { s.Workload.Payload.Autocommit, s.Workload.Payload.CommitEvery = false, 7 },
			"per dataset":        func(s *contract.RunSpec) { s.Prepare = contract.PreparePerDataset },
			"per dataset, again": func(s *contract.RunSpec) { s.Prepare = contract.PreparePerDataset },
		} {
			if got := digest(operation, change); got != want {
				t.Errorf("%s, %s: the content differs", operation, name)
			}
		}
		if got := digest(operation, func(s *contract.RunSpec) { s.Workload.Payload.Seed = 1 }); got == want {
			t.Errorf("%s: another seed has the same content", operation)
		}
	}
	// A single byte that differs shows.
	spec := payloadSpec(t, server, contract.PayloadUpdate)
	spec.Workload.Payload.Rows = 10
	before := mustSucceed(t, spec).Result.Checks["contentSHA256"]
	server.Exec(t, "UPDATE dbbench.bench SET data = CONCAT(CHAR(ASCII(data) ^ 1), SUBSTRING(data, 2)) WHERE id = 5")
	var sum [32]byte
	if after := tableDigest(t, server, "dbbench.bench", &sum); after == before {
		t.Error("a byte was changed and the digest was not")
	}
	server.Exec(t, "UPDATE dbbench.bench SET data = CONCAT(CHAR(ASCII(data) ^ 1), SUBSTRING(data, 2)) WHERE id = 5")
	if after := tableDigest(t, server, "dbbench.bench", &sum); after != before {
		t.Errorf("the digest %s is not that of its definition, %s", before, after)
	}
}

// tableDigest computes the digest of a small table as documented, in another way than
// the runner.
func tableDigest(t *testing.T, s *mariadb.Server, table string, sum *[32]byte) string {
	t.Helper()
	*sum = [32]byte{}
	rows := s.Rows(t, "SELECT id, SHA2(data, 256) FROM "+table)
	for _, r := range rows {
		h, carry := sha256.Sum256([]byte(r[0]+":"+r[1])), 0
		for i := range sum { // the least significant byte first
			carry += int(sum[i]) + int(h[i])
			sum[i] = byte(carry)
			carry >>= 8
		}
	}
	count := make([]byte, 8)
	for i, n := 0, len(rows); i < 8; i, n = i+1, n>>8 {
		count[i] = byte(n)
	}
	h := sha256.Sum256(append(count, sum[:]...))
	return hex.EncodeToString(h[:])
}

// TestPayloadProgress: a load that ends with its rows says how far it is.
func TestPayloadProgress(t *testing.T) {
	server := mariadb.Start(t)
	for _, autocommit := range []bool{true, false} {
		spec := payloadSpec(t, server, contract.PayloadInsert)
		spec.Workload.Payload.Rows, spec.Workload.Payload.Size, spec.Workload.Payload.Autocommit = 20000, 10, autocommit
		spec.Workload.Payload.CommitEvery = 10
		spec.ProgressInterval = contract.Duration(100 * time.Millisecond)
		o := runSpec(t, spec)
		if o.exit != exitOK {
			t.Fatalf("exit code %d: %s", o.exit, o.stderr)
		}
		var between bool
		for _, line := range strings.SplitAfter(o.stdout, "\n") {
			p, err := contract.ReadProgress(strings.NewReader(line))
			if err != nil {
				t.Fatal(err)
			}
			if p == nil || p.Phase != contract.PhaseMeasure {
				continue
			}
			if p.PercentDone < 0 {
				t.Errorf("progress %+v", p)
			}
			between = between || p.PercentDone > 0 && p.PercentDone < 100
		}
		if last, err := contract.ReadProgress(strings.NewReader(o.stdout)); err != nil || last.Events != 20000+map[bool]int64{false: 2000}[autocommit] {
			t.Errorf("last progress %+v, %v", last, err)
		}
		if !between {
			t.Error("no progress was seen")
		}
	}
}

// TestPayloadMemory: the memory that values take does not grow with their number.
func TestPayloadMemory(t *testing.T) {
	server := mariadb.Start(t)
	for _, operation := range []string{contract.PayloadInsert, contract.PayloadUpdate} {
		spec := payloadSpec(t, server, operation)
		p := spec.Workload.Payload
		p.Size, p.Rows = 1<<20, 100
		spec.Timeout = seconds(600)
		spec.Load.Clients = 10
		spec.Cleanup = contract.CleanupAlways
		r := mustSucceed(t, spec)
		t.Logf("%s: %d events in %.1f s, at most %d MiB resident", operation, r.Result.Events, float64(r.Result.ElapsedNanos)/1e9, r.Environment.Runner.MaxRSSBytes>>20)
		if got := r.Environment.Runner.MaxRSSBytes; got > 300<<20 {
			t.Errorf("%s: %d MiB resident with 10 clients and 100 values of 1 MiB", operation, got>>20)
		}
	}
}

func TestPayloadRefusals(t *testing.T) {
	server := mariadb.Start(t, "--max-allowed-packet=1M")
	for _, tt := range []struct {
		name, want string
		change     func(*contract.RunSpec)
		class      contract.Class
	}{
		{"unknown engine", "spec.workload.payload.engine", func(s *contract.RunSpec) { s.Workload.Payload.Engine = "Falcon" }, contract.ClassPreflightFailed},
		{"packet", "max_allowed_packet", func(s *contract.RunSpec) { s.Workload.Payload.Size = 1 << 20 }, contract.ClassPreflightFailed},
		{"packet of the load", "max_allowed_packet", func(s *contract.RunSpec) {
			s.Workload.Payload.Operation, s.Workload.Payload.Size, s.Workload.Payload.ToSize = contract.PayloadUpdate, 600<<10, size(1)
		}, contract.ClassPreflightFailed},
		{"data that is not there", "does not exist", func(s *contract.RunSpec) { s.Prepare = contract.PrepareNever }, contract.ClassPrepareFailed},
	} {
		spec := payloadSpec(t, server, contract.PayloadInsert)
		tt.change(&spec)
		f := mustFail(t, runSpec(t, spec), tt.class)
		if !strings.Contains(f.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.name, f, tt.want)
		}
	}
}

// TestPayloadEngineIsNotSubstituted: a server that silently takes another engine, or
// has disabled it, is found out before any row is written.
func TestPayloadEngineIsNotSubstituted(t *testing.T) {
	server := mariadb.Start(t, "--enforce-storage-engine=InnoDB", "--sql-mode=")
	spec := payloadSpec(t, server, contract.PayloadInsert)
	spec.Workload.Payload.Engine = "MyISAM"
	f := mustFail(t, runSpec(t, spec), contract.ClassPreflightFailed)
	if !strings.Contains(f.Message, "MyISAM") || !strings.Contains(f.Message, "InnoDB") {
		t.Errorf("failure %+v", f)
	}
}

func TestPayloadLostRowsAreFound(t *testing.T) {
	server := mariadb.Start(t)
	spec := payloadSpec(t, server, contract.PayloadUpdate)
	spec.Load = contract.Load{Clients: 2, Duration: seconds(2)}
	p := start(t, spec)
	p.await(measuring)
	server.Exec(t, "DELETE FROM dbbench.bench WHERE id = 3")
	f := mustFail(t, p.wait(), contract.ClassVerifyFailed)
	if !strings.Contains(f.Message, "999") {
		t.Errorf("failure %+v", f)
	}
}

// TestPayloadInterruptedLoadResumes: of a load that was cut off, what was loaded is not
// loaded again.
func TestPayloadInterruptedLoadResumes(t *testing.T) {
	server := mariadb.Start(t)
	spec := payloadSpec(t, server, contract.PayloadUpdate)
	spec.Prepare = contract.PreparePerDataset
	spec.Workload.Payload.Rows = 30000
	inserts := func() int64 { return server.Status(t, "Com_insert")["Com_insert"] }
	before := inserts()
	want := mustSucceed(t, spec).Result.Checks["contentSHA256"]
	whole := inserts() - before
	server.Exec(t, "DROP DATABASE dbbench")

	p := start(t, spec)
	p.await(`"phase":"Prepare"`)
	for noted := 0; noted < 3; {
		rows, err := server.Root.Query("SELECT COUNT(*) FROM dbbench._dbbench_dataset")
		if err != nil {
			continue // it is being made
		}
		for rows.Next() {
			if err := rows.Scan(&noted); err != nil {
				t.Fatal(err)
			}
		}
		rows.Close()
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.command.Wait()
	loaded, err := strconv.Atoi(server.Rows(t, "SELECT COUNT(*) FROM dbbench.bench")[0][0])
	if err != nil || loaded == 0 || loaded == 30000 {
		t.Fatalf("%d rows are loaded, %v", loaded, err)
	}
	before = inserts()
	if got := mustSucceed(t, spec).Result.Checks["contentSHA256"]; got != want {
		t.Error("the content differs after a load that was resumed")
	}
	if rest := inserts() - before; rest >= whole {
		t.Errorf("%d rows were there; the load took %d INSERTs, as from the start (%d)", loaded, rest, whole)
	}
}
