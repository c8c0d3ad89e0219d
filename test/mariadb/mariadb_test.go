//go:build linux

package mariadb

import (
	"os"
	"testing"
)

func TestServerLivesAndEnds(t *testing.T) {
	var s *Server
	t.Run("server", func(t *testing.T) {
		s = Start(t, "--max-connections=42")
		if got := s.Rows(t, "SELECT @@max_connections, @@bind_address, NULL")[0]; got[0] != "42" || got[1] != "127.0.0.1" || got[2] != "NULL" {
			t.Errorf("got %v", got)
		}
		if s.Status(t, "Threads_connected")["Threads_connected"] < 1 {
			t.Error("nobody is connected")
		}
	})
	select {
	case <-s.exited:
	default:
		t.Error("the server outlives its test")
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("its directory is left: %v", err)
	}
}
