//go:build linux

package mariadb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The servers beside the machine's own MariaDB. They are unpacked from the root
// filesystems of the sandbox's images; they need no root and no container.
const (
	MySQL9      = "mysql"
	MariaDB1011 = "mariadb-10.11"
	MariaDB118  = "mariadb-11.8"
)

// RequireEnv is an environment variable that has tests fail where a server is not
// there, in place of being skipped.
const RequireEnv = "DBBENCH_ALL_SERVERS"

// StartUnpacked starts one of these servers for a test, as Start does. Where it was not
// unpacked the test is skipped, and says how to have it.
func StartUnpacked(t testing.TB, name string, options ...string) *Server {
	t.Helper()
	u, err := findUnpacked(name)
	if errors.Is(err, os.ErrNotExist) {
		skip := t.Skipf
		if os.Getenv(RequireEnv) != "" {
			skip = t.Fatalf
		}
		skip("there is no server %s: unpack it with (cd hack/sandbox && go run . server-root %s)", name, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := u.copyData(dir); err != nil {
		t.Fatal(err)
	}
	s, err := startOn(u.command(), dir, append(u.fast(), options...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// unpacked is a server's root filesystem.
type unpacked struct {
	root   string
	server string // its program
	mysql  bool
}

func findUnpacked(name string) (unpacked, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return unpacked{}, err
	}
	u := unpacked{root: filepath.Join(cache, "dbbench-sandbox", "servers", name), mysql: name == MySQL9}
	u.server = filepath.Join(u.root, "usr/sbin/mariadbd")
	if u.mysql {
		u.server = filepath.Join(u.root, "usr/sbin/mysqld")
	}
	_, err = os.Stat(u.server)
	return u, err
}

// command runs the program with the loader and the libraries that it was built for,
// whatever this machine has.
func (u unpacked) command() []string {
	loaders, _ := filepath.Glob(filepath.Join(u.root, "usr/lib*/ld-linux-*.so.*"))
	libraries, _ := filepath.Glob(filepath.Join(u.root, "usr/lib/*-linux-gnu"))
	if len(loaders) == 0 || len(libraries) == 0 {
		return []string{u.server} // the error will say what it lacks
	}
	return []string{loaders[0], "--library-path", libraries[0], u.server, "--no-defaults",
		"--basedir=" + filepath.Join(u.root, "usr"), "--plugin-dir=" + filepath.Join(u.root, "usr/lib/mysql/plugin")}
}

// fast are the options with which a test need not wait for a disk.
func (u unpacked) fast() []string {
	options := []string{"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--innodb-flush-method=nosync"}
	if u.mysql {
		options = append(options, "--mysqlx=OFF", "--secure-file-priv=NULL", "--innodb-redo-log-capacity=64M")
	} else {
		options = append(options, "--plugin-maturity=unknown")
	}
	return options
}

// copyData gives a server a data directory of its own: a copy of one that is made once,
// which takes MySQL some seconds, and kept beside the server.
func (u unpacked) copyData(dir string) error {
	made := u.root + ".data"
	if _, err := os.Stat(made); errors.Is(err, os.ErrNotExist) {
		making, err := os.MkdirTemp(filepath.Dir(u.root), "making-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(making)
		if err := u.install(making); err != nil {
			return err
		}
		// Another test may have been faster; its copy serves as well.
		if err := os.Rename(filepath.Join(making, "data"), made); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return run([]string{"cp", "-a", made, filepath.Join(dir, "data")}, nil)
}

// install makes the data directory.
func (u unpacked) install(dir string) error {
	data := filepath.Join(dir, "data")
	args := append(u.command(), "--datadir="+data, "--innodb-flush-method=nosync")
	args = append(args, asRoot()...)
	if u.mysql {
		return run(append(args, "--initialize-insecure", "--secure-file-priv=NULL", "--innodb-redo-log-capacity=16M"), nil)
	}
	// What mariadb-install-db feeds to the server; the script itself would run programs
	// that need this machine's loader.
	statements := []byte("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n")
	for _, name := range []string{"system_tables", "performance_tables", "system_tables_data"} {
		files, _ := filepath.Glob(filepath.Join(u.root, "usr/share/*/m*_"+name+".sql"))
		if len(files) == 0 {
			return fmt.Errorf("%s has no script that makes the %s", u.root, name)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		statements = append(statements, b...)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	return run(append(args, "--bootstrap", "--innodb", "--max_allowed_packet=16M", "--net_buffer_length=16K"), statements)
}

func run(args []string, input []byte) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = bytes.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(args[0]), err, out)
	}
	return nil
}
