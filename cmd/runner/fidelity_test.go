//go:build linux

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// counters are what the server counts of a load.
var counters = []string{"Com_insert", "Com_select", "Com_update", "Com_commit", "Com_delete", "Com_rollback"}

// TestSlapIsMariadbSlap runs the tool and the runner with the same options on the same
// server: the server must count the same statements, and have the same table.
func TestSlapIsMariadbSlap(t *testing.T) {
	tool, err := exec.LookPath("mariadb-slap")
	if err != nil {
		t.Fatalf("%v: install it with: %s", err, mariadb.Packages)
	}
	server := mariadb.Start(t)

	type change = func(*contract.Slap, *contract.Load)
	for _, tt := range []struct {
		args   string
		change change
	}{
		{"", func(*contract.Slap, *contract.Load) {}},
		{"-auto-generate-sql-load-type=write", func(s *contract.Slap, _ *contract.Load) { s.LoadType = contract.SlapWrite }},
		{"-auto-generate-sql-load-type=read --engine=innodb", func(s *contract.Slap, _ *contract.Load) {
			s.LoadType, s.Engine = contract.SlapRead, "innodb"
		}},
		{"-auto-generate-sql-load-type=key --auto-generate-sql-add-autoincrement", func(s *contract.Slap, _ *contract.Load) {
			s.LoadType, s.AutoIncrement = contract.SlapKey, true
		}},
		{"-auto-generate-sql-load-type=key --auto-generate-sql-guid-primary --concurrency=3", func(s *contract.Slap, l *contract.Load) {
			s.LoadType, s.GUIDPrimary, l.Clients = contract.SlapKey, true, 3
		}},
		{"-auto-generate-sql-load-type=update --auto-generate-sql-guid-primary", func(s *contract.Slap, _ *contract.Load) {
			s.LoadType, s.GUIDPrimary = contract.SlapUpdate, true
		}},
		{"-auto-generate-sql-load-type=update --engine=myisam:max_rows=1000", func(s *contract.Slap, _ *contract.Load) {
			s.LoadType, s.Engine, s.EngineOption = contract.SlapUpdate, "myisam", "max_rows=1000"
		}},
		{"-auto-generate-sql-load-type=mixed --auto-generate-sql-add-autoincrement --concurrency=4 --number-of-queries=90",
			func(s *contract.Slap, l *contract.Load) { s.AutoIncrement, l.Clients, l.Events = true, 4, 90 }},
		{"-concurrency=4 --number-of-queries=2", func(_ *contract.Slap, l *contract.Load) { l.Clients, l.Events = 4, 2 }},
		{"-concurrency=2 --auto-generate-sql-execute-number=37", func(_ *contract.Slap, l *contract.Load) { l.Clients, l.EventsPerClient = 2, 37 }},
		{"-auto-generate-sql-write-number=5 --auto-generate-sql-unique-write-number=2 --auto-generate-sql-unique-query-number=4",
			func(s *contract.Slap, _ *contract.Load) { s.PreloadRows, s.UniqueWrites, s.UniqueQueries = 5, 2, 4 }},
		{"-number-int-cols=3:1 --number-char-cols=2:1 --auto-generate-sql-secondary-indexes=2 --auto-generate-sql-add-autoincrement",
			func(s *contract.Slap, _ *contract.Load) {
				s.IntColumns, s.IntColumnsIndexed, s.CharColumns, s.CharColumnsIndexed = 3, true, 2, true
				s.SecondaryIndexes, s.AutoIncrement = 2, true
			}},
		{"-number-int-cols=2 --number-char-cols=3", func(s *contract.Slap, _ *contract.Load) { s.IntColumns, s.CharColumns = 2, 3 }},
		{"-commit=5 --concurrency=2 --number-of-queries=50", func(s *contract.Slap, l *contract.Load) {
			s.CommitEvery, l.Clients, l.Events = 5, 2, 50
		}},
		{"-detach=3 --concurrency=2 --number-of-queries=50", func(s *contract.Slap, l *contract.Load) {
			s.DetachEvery, l.Clients, l.Events = 3, 2, 50
		}},
		{"-commit=3 --detach=4 --concurrency=2 --number-of-queries=60 --auto-generate-sql-add-autoincrement",
			func(s *contract.Slap, l *contract.Load) {
				s.CommitEvery, s.DetachEvery, l.Clients, l.Events, s.AutoIncrement = 3, 4, 2, 60, true
			}},
		{"-auto-generate-sql-load-type=write --engine=aria --auto-generate-sql-add-autoincrement", func(s *contract.Slap, _ *contract.Load) {
			s.LoadType, s.Engine, s.AutoIncrement = contract.SlapWrite, "aria", true
		}},
		{"-auto-generate-sql-load-type=mixed --engine=memory --auto-generate-sql-guid-primary", func(s *contract.Slap, _ *contract.Load) {
			s.Engine, s.GUIDPrimary = "memory", true
		}},
	} {
		name := strings.TrimPrefix(tt.args, "-")
		if name == "" {
			name = "defaults"
		}
		t.Run(name, func(t *testing.T) {
			args := []string{"--no-defaults", "--user=root", "--socket=" + server.Socket, "--create-schema=slapref", "--no-drop", "--auto-generate-sql"}
			if tt.args != "" {
				args = append(args, strings.Fields("-"+tt.args)...)
			}
			before := server.Status(t, counters...)
			if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
				t.Fatalf("mariadb-slap: %v\n%s", err, out)
			}
			want := since(server.Status(t, counters...), before)
			wantTable := createTable(t, server, "slapref")
			server.Exec(t, "DROP DATABASE slapref")

			spec := slapSpec(t, server)
			spec.Cleanup = contract.CleanupNever
			tt.change(spec.Workload.Slap, &spec.Load)
			before = server.Status(t, counters...)
			record := mustSucceed(t, spec)
			got := since(server.Status(t, counters...), before)
			if !maps.Equal(got, want) {
				t.Errorf("the server counted\n     %v\nwant %v", got, want)
			}
			if gotTable := createTable(t, server, spec.Target.Database); gotTable != wantTable {
				t.Errorf("got table\n%s\nwant\n%s", gotTable, wantTable)
			}
			checkCounts(t, record)
			if o := runSpec(t, spec, "cleanup"); o.exit != exitOK {
				t.Errorf("cleanup: exit code %d: %s", o.exit, o.stderr)
			}
		})
	}
}

func since(after, before map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name := range after {
		out[name] = after[name] - before[name]
	}
	return out
}

// ours is what the runner adds to a table: its mark. The counter of the next key is
// left out as well, which depends on how the clients' INSERTs met.
var ours = regexp.MustCompile(` COMMENT='dbbench:[^']*'| AUTO_INCREMENT=[0-9]+`)

func createTable(t *testing.T, s *mariadb.Server, database string) string {
	t.Helper()
	text := s.Rows(t, fmt.Sprintf("SHOW CREATE TABLE `%s`.t1", database))[0][1]
	return ours.ReplaceAllString(text, "")
}
