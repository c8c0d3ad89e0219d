package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestRunWritesTheImageThatTheFlagsDescribe(t *testing.T) {
	dir := t.TempDir()
	program, output := filepath.Join(dir, "manager"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := run([]string{"--tag", "dbbench.dev/operator:dev", "--output", output, "--arch", "arm64", "--user", "1:2",
		"--entrypoint", "/manager --verbose", "--file", program + "=/manager"}, io.Discard)
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
	output := filepath.Join(dir, "image.tar")
	for want, args := range map[string][]string{
		"--output and --tag are required": {"--tag", "a:b"},
		"SOURCE=PATH":                     {"--tag", "a:b", "--output", output, "--file", "nothing"},
		"no such file":                    {"--tag", "a:b", "--output", output, "--file", dir + "/absent=/x"},
		"layer":                           {"--tag", "a:b", "--output", output, "--layer", dir + "/absent.tar"},
		"unexpected argument":             {"--tag", "a:b", "--output", output, "extra"},
	} {
		if err := run(args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("a failed run left an image")
	}
}
