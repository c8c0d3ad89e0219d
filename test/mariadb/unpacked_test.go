//go:build linux

package mariadb

import (
	"strings"
	"testing"
)

func TestUnpackedServers(t *testing.T) {
	for name, version := range map[string]string{MySQL9: "9.", MariaDB1011: "10.11.", MariaDB118: "11.8."} {
		t.Run(name, func(t *testing.T) {
			s := StartUnpacked(t, name)
			if got := s.Rows(t, "SELECT VERSION()")[0][0]; !strings.HasPrefix(got, version) {
				t.Errorf("version %s, want %s", got, version)
			}
			s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE = InnoDB")
		})
	}
}
