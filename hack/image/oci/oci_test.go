package oci

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func image() Image {
	return Image{
		Tag: "dbbench.dev/test:1", Architecture: "arm64", User: "65532:65532", Entrypoint: []string{"/a/b"},
		Files: []File{{Path: "/a/b", Mode: 0o755, Data: []byte("content")}, {Path: "/data", Mode: 0o770, Dir: true, UID: 7}},
	}
}

func TestWriteIsReproducibleAndLoads(t *testing.T) {
	var texts [2][]byte
	for i := range texts {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := image().Write(file); err != nil {
			t.Fatal(err)
		}
		texts[i], _ = os.ReadFile(file)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the same content gave two images")
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(texts[0])), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/a/b" {
		t.Errorf("config = %+v", config)
	}
	content := mutate.Extract(img)
	defer content.Close()
	if text, _ := io.ReadAll(content); !bytes.Contains(text, []byte("content")) {
		t.Error("the file is not in the image")
	}
}

func TestTagIsChecked(t *testing.T) {
	i := image()
	i.Tag = "not a tag"
	if err := i.Write(filepath.Join(t.TempDir(), "x.tar")); err == nil {
		t.Error("a tag with blanks was taken")
	}
}
