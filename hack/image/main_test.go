package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"dbbench.dev/operator/hack/image/sbom"
)

func TestRunWritesTheImageThatTheFlagsDescribe(t *testing.T) {
	dir := t.TempDir()
	program, output := filepath.Join(dir, "manager"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"--tag", "dbbench.dev/operator:dev", "--output", output, "--arch", "arm64", "--user", "1:2",
		"--entrypoint", "/manager --verbose", "--file", program + "=/manager"}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(output, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(append(config.Config.Entrypoint, config.Architecture, config.Config.User), " ")
	if got != "/manager --verbose arm64 1:2" {
		t.Errorf("image: %s", got)
	}
}

func TestRunNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	output, text := filepath.Join(dir, "image.tar"), filepath.Join(dir, "program.txt")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--tag is required":   {"--tag", "a:b"},
		"one architecture":    {"--tag", "a:b", "--output", output, "--arch", "amd64,arm64"},
		"program.txt":         {"--tag", "a:b", "--layout", dir + "/layout", "--file", text + "=/program.txt"},
		"tag must be":         {"--tag", "localhost:1/a", "--push"},
		"SOURCE=PATH":         {"--tag", "a:b", "--output", output, "--file", "nothing"},
		"no such file":        {"--tag", "a:b", "--output", output, "--file", dir + "/absent=/x"},
		"layer":               {"--tag", "a:b", "--output", output, "--layer", dir + "/absent.tar"},
		"unexpected argument": {"--tag", "a:b", "--output", output, "extra"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("a failed run left an image")
	}
}

// programs makes a program for each of two architectures: the test's own, as one that
// says what it is made of.
func programs(t *testing.T) (template string) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("this system does not show the running program as a file")
	}
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.WriteFile(filepath.Join(dir, arch), append(data, arch...), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir + "/{arch}=/manager"
}

// TestLayout reads back what --layout wrote: an index of both architectures, and a
// list of modules that refers to each.
func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	var digests []string
	for range 2 { // the second replaces the first
		err := run(t.Context(), []string{"--tag", "example.com/x:1", "--arch", "amd64,arm64", "--layout", dir, "--file", programs(t)}, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		top, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := top.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Manifests) != 3 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "example.com/x:1" {
			t.Fatalf("the layout holds %+v", manifest.Manifests)
		}
		index, err := top.ImageIndex(manifest.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		subjects := map[v1.Hash]bool{}
		for _, d := range manifest.Manifests[1:] {
			list, err := top.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := list.Manifest()
			subjects[m.Subject.Digest] = true
		}
		both, _ := index.IndexManifest()
		var platforms []string
		for _, d := range both.Manifests {
			platforms = append(platforms, d.Platform.String())
			if !subjects[d.Digest] {
				t.Errorf("%s has no list of modules", d.Platform)
			}
		}
		if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
			t.Errorf("platforms: %s", got)
		}
		digests = append(digests, manifest.Manifests[0].Digest.String())
	}
	if digests[0] != digests[1] {
		t.Error("the same programs gave two indexes")
	}
}

// TestPush uploads to a registry, and finds there what a cluster and a scanner look for.
func TestPush(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		server := httptest.NewServer(registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0))))
		defer server.Close()
		tag := strings.TrimPrefix(server.URL, "http://") + "/team/operator:v1"
		var out bytes.Buffer
		err := run(t.Context(), []string{"--tag", tag, "--arch", "amd64,arm64", "--push", "--entrypoint", "/manager", "--file", programs(t)}, &out, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(strings.TrimSpace(out.String()))
		if err != nil {
			t.Fatalf("printed %q: %v", out.String(), err)
		}
		for _, arch := range []string{"amd64", "arm64"} {
			img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
			if err != nil {
				t.Fatal(err)
			}
			if config, err := img.ConfigFile(); err != nil || config.Architecture != arch || config.Config.Entrypoint[0] != "/manager" {
				t.Errorf("%s: %+v, %v", arch, config, err)
			}
			digest, _ := img.Digest()
			lists, err := remote.Referrers(ref.Context().Digest(digest.String()))
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := lists.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			if len(manifest.Manifests) != 1 || manifest.Manifests[0].ArtifactType != sbom.MediaType {
				t.Errorf("%s is referred to by %+v", arch, manifest.Manifests)
			}
		}
	}
}
