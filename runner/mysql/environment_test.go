//go:build linux

package mysql

import (
	"strings"
	"testing"

	"dbbench.dev/operator/test/mariadb"
)

// TestVariables: servers of equal configuration have equal hashes, whatever they are
// called and wherever their files are.
func TestVariables(t *testing.T) {
	read := func(options ...string) Variables {
		v, err := ReadVariables(mustOpen(t, target(t, mariadb.Start(t, options...)), SessionOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	one, same, other := read(), read("--server-id=7", "--report-password=canary"), read("--innodb-io-capacity=300")
	if one.SHA256() != same.SHA256() {
		for name := range one {
			if one[name] != same[name] && !isIdentity(name, one[name]) {
				t.Errorf("%s is %q and %q", name, one[name], same[name])
			}
		}
	}
	if one.SHA256() == other.SHA256() || len(one.SHA256()) != 64 {
		t.Errorf("hashes %s and %s of different servers", one.SHA256(), other.SHA256())
	}
	seen := same.Performance()
	for _, name := range []string{"innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_io_capacity",
		"innodb_log_file_size", "innodb_flush_method", "sync_binlog", "log_bin", "thread_handling", "table_open_cache", "query_cache_type",
		"max_connections", "tx_isolation", "version"} {
		if seen[name] == "" {
			t.Errorf("the variable %s is not on record", name)
		}
	}
	for name, value := range seen {
		if strings.Contains(value, "canary") || len(value) > maxVariableBytes+len("…") {
			t.Errorf("%s=%s is on record", name, value)
		}
	}
}
