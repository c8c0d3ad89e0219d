package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dbbench.dev/operator/hack/image/oci"
)

const pauseImage = "dbbench.dev/sandbox/pause:1"

// serverImage is a database server from Debian's packages.
type serverImage struct {
	tag   string
	suite string
	pkgs  string
}

var serverImages = map[string]serverImage{
	"mariadb-10.11": {"dbbench.dev/sandbox/mariadb:10.11", "bookworm", "mariadb-server,mariadb-client"},
	"mariadb-11.8":  {"dbbench.dev/sandbox/mariadb:11.8", "trixie", "mariadb-server,mariadb-client"},
	"mysql":         {"dbbench.dev/sandbox/mysql:9", "sid", "mysql-server,mysql-client"},
}

// alias is the name by which other clusters pull an image of the same server. The
// samples use it, so that they run as they stand there and here.
func (i serverImage) alias() string {
	return "docker.io/library/" + strings.TrimPrefix(i.tag, "dbbench.dev/sandbox/")
}

// defaultServer is the one that up loads.
const defaultServer = "mariadb-10.11"

func serverNames() string { return strings.Join(slices.Sorted(maps.Keys(serverImages)), ", ") }

// serverUID owns the data directory of a server's image.
const serverUID = 999

// loadPause builds the image that holds a pod's namespaces.
func (s *sandbox) loadPause(ctx context.Context) error {
	if s.hasImage(ctx, pauseImage) {
		return nil
	}
	binary := s.in("run", "pause")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./pause")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build pause: %w: %s", err, text)
	}
	file, err := oci.ReadFile(binary, "/pause")
	if err != nil {
		return err
	}
	image := oci.Image{Tag: pauseImage, Architecture: runtime.GOARCH, User: "65535:65535", Entrypoint: []string{"/pause"}, Files: []oci.File{file}}
	tarball := s.in("run", "pause.tar")
	if err := image.Write(tarball); err != nil {
		return err
	}
	return s.loadImages(ctx, []string{tarball})
}

func (s *sandbox) hasImage(ctx context.Context, tag string) bool {
	text, err := exec.CommandContext(ctx, "ctr", "--address", s.socket(), "--namespace", "k8s.io", "image", "ls", "-q", "name=="+tag).Output()
	return err == nil && strings.TrimSpace(string(text)) == tag
}

// loadImages imports tarballs into the sandbox's containerd.
func (s *sandbox) loadImages(ctx context.Context, files []string) error {
	if !s.daemonAlive("containerd") {
		return errors.New("the sandbox is not up; run: sandbox up")
	}
	for _, file := range files {
		if err := s.ctr(ctx, "image", "import", file); err != nil {
			return err
		}
	}
	return nil
}

func (s *sandbox) loadServerImage(ctx context.Context) error {
	return s.serverImages(ctx, []string{defaultServer})
}

// serverImages builds the named servers' images into the cache, and loads them where
// the sandbox is up.
func (s *sandbox) serverImages(ctx context.Context, names []string) error {
	for _, name := range names {
		image, ok := serverImages[name]
		if !ok {
			return fmt.Errorf("no server image %q; there are %s", name, serverNames())
		}
		tarball, err := s.buildServer(ctx, image)
		if err != nil {
			return fmt.Errorf("image %s: %w", image.tag, err)
		}
		if !s.daemonAlive("containerd") {
			s.say("built %s for the next sandbox: run server-image again when it is up", image.tag)
			continue
		}
		if err := s.loadServerTarball(ctx, image, tarball); err != nil {
			return err
		}
	}
	return nil
}

func (s *sandbox) loadServerTarball(ctx context.Context, image serverImage, tarball string) error {
	marker := s.in("run", filepath.Base(tarball)+".loaded")
	if _, err := os.Stat(marker); err == nil && s.hasImage(ctx, image.alias()) {
		return nil
	}
	if err := s.loadImages(ctx, []string{tarball}); err != nil {
		return err
	}
	if err := s.ctr(ctx, "image", "tag", "--force", image.tag, image.alias()); err != nil {
		return err
	}
	return os.WriteFile(marker, nil, 0o644)
}

// buildServer makes a server's image in the cache, unless it is there.
func (s *sandbox) buildServer(ctx context.Context, image serverImage) (string, error) {
	entrypoint, err := files.ReadFile("files/server-entrypoint")
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Append(nil, image, string(entrypoint), rootfsOptions))
	tarball := filepath.Join(s.cache, "images", hex.EncodeToString(key[:6])+".tar")
	if _, err := os.Stat(tarball); err == nil {
		return tarball, nil
	}
	if err := os.MkdirAll(filepath.Dir(tarball), 0o755); err != nil {
		return "", err
	}
	rootfs, err := s.rootfs(ctx, image)
	if err != nil {
		return "", err
	}
	built := oci.Image{
		Tag: image.tag, Architecture: runtime.GOARCH, User: fmt.Sprintf("%d:%d", serverUID, serverUID),
		Entrypoint: []string{"/usr/local/bin/server-entrypoint"},
		Layers:     []string{rootfs},
		Files: []oci.File{
			{Path: "/usr/local/bin/server-entrypoint", Mode: 0o755, Data: entrypoint},
			{Path: "/var/lib/mysql", Mode: 0o770, Dir: true, UID: serverUID},
			{Path: "/run/mysqld", Mode: 0o770, Dir: true, UID: serverUID},
		},
	}
	if err := built.Write(tarball + ".new"); err != nil {
		return "", err
	}
	return tarball, os.Rename(tarball+".new", tarball)
}

// rootfsOptions leave out what no server needs, and the package's own data directory.
var rootfsOptions = []string{
	"--variant=minbase",
	`--aptopt=Acquire::Check-Valid-Until "false"`,
	"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	"--customize-hook=rm -rf \"$1\"/var/lib/mysql/* \"$1\"/var/lib/mysql-files \"$1\"/var/cache/apt/* \"$1\"/var/lib/apt/lists/*",
}

// rootfs makes a server's root filesystem with the machine's own mirror.
func (s *sandbox) rootfs(ctx context.Context, image serverImage) (string, error) {
	// Like the image it is kept: entrypoints change, packages do not.
	key := sha256.Sum256(fmt.Append(nil, image, rootfsOptions))
	tarball := filepath.Join(s.cache, "images", "rootfs-"+hex.EncodeToString(key[:6])+".tar")
	if _, err := os.Stat(tarball); err == nil {
		return tarball, nil
	}
	mirror, err := debianMirror("/etc/apt")
	if err != nil {
		return "", err
	}
	s.say("building the root filesystem of %s; about a minute", image.tag)
	args := append(slices.Clone(rootfsOptions), "--include="+image.pkgs, image.suite, tarball+".new.tar", mirror)
	if err := s.command(ctx, "mmdebstrap", args...); err != nil {
		return "", err
	}
	return tarball, os.Rename(tarball+".new.tar", tarball)
}

// debianMirror reads the mirror of Debian that the machine's own sources name.
func debianMirror(dir string) (string, error) {
	names, _ := filepath.Glob(filepath.Join(dir, "sources.list.d", "*"))
	for _, name := range append([]string{filepath.Join(dir, "sources.list")}, names...) {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		mirror := mirrorOf(bufio.NewScanner(f))
		f.Close()
		if mirror != "" {
			return mirror, nil
		}
	}
	return "", fmt.Errorf("no mirror of Debian in %s/sources.list or sources.list.d; a machine of another distribution cannot build server images", dir)
}

// mirrorOf finds the address of Debian's main archive in either form of sources.
func mirrorOf(lines *bufio.Scanner) string {
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "deb" && fields[0] != "URIs:" {
			continue
		}
		for _, field := range fields[1:] {
			if strings.Contains(field, "://") && strings.HasSuffix(strings.TrimSuffix(field, "/"), "/debian") {
				return field
			}
		}
	}
	return ""
}

// serverParts are what a server's programs need of its root filesystem.
var serverParts = []string{"./usr/sbin", "./usr/bin", "./usr/lib", "./usr/lib64", "./usr/share/m*"}

// serverRoots unpacks the named servers into the cache, for tests that run them without
// a container, and prints where.
func (s *sandbox) serverRoots(ctx context.Context, names []string) error {
	for _, name := range names {
		image, ok := serverImages[name]
		if !ok {
			return fmt.Errorf("no server %q; there are %s", name, serverNames())
		}
		tarball, err := s.rootfs(ctx, image)
		if err != nil {
			return fmt.Errorf("server %s: %w", name, err)
		}
		if err := s.unpackServer(ctx, tarball, s.serverRoot(name)); err != nil {
			return fmt.Errorf("server %s: %w", name, err)
		}
		fmt.Println(s.serverRoot(name))
	}
	return nil
}

func (p paths) serverRoot(name string) string { return filepath.Join(p.cache, "servers", name) }

// unpackServer unpacks a root filesystem, unless that is what is there already.
func (s *sandbox) unpackServer(ctx context.Context, tarball, dir string) error {
	marker := filepath.Join(dir, "unpacked")
	if b, err := os.ReadFile(marker); err == nil && string(b) == filepath.Base(tarball) {
		return nil
	}
	// The data directory that tests keep beside it is of the old server.
	for _, old := range []string{dir, dir + ".data", dir + ".new"} {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir+".new", 0o755); err != nil {
		return err
	}
	args := append([]string{"--extract", "--file", tarball, "--directory", dir + ".new", "--no-same-owner", "--wildcards"}, serverParts...)
	if err := s.command(ctx, "tar", args...); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir+".new", "unpacked"), []byte(filepath.Base(tarball)), 0o644); err != nil {
		return err
	}
	return os.Rename(dir+".new", dir)
}
