// Package oci builds container images without a container engine.
package oci

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image describes an image: layers from tarballs, below one layer of single files.
type Image struct {
	Tag          string // such as example.com/name:tag
	Architecture string // as in GOARCH
	User         string // such as 65532:65532
	Entrypoint   []string
	Env          []string
	Layers       []string // paths of tarballs
	Files        []File
}

// File is a file or a folder of the image.
type File struct {
	Path string
	Mode int64 // permissions; with Dir a folder
	Dir  bool
	UID  int
	Data []byte
}

// epoch stands for every time in an image, so that the same content is the same image.
var epoch = time.Unix(0, 0).UTC()

// Write builds the image and writes it as a tarball that containerd and docker load.
func (i Image) Write(output string) error {
	tag, err := name.NewTag(i.Tag)
	if err != nil {
		return err
	}
	img, err := i.Build()
	if err != nil {
		return err
	}
	return tarball.WriteToFile(output, tag, img)
}

// Build builds the image.
func (i Image) Build() (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	layers, err := i.layers()
	if err != nil {
		return nil, err
	}
	if img, err = mutate.AppendLayers(img, layers...); err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	// Without them containerd takes the image for another platform's and drops it.
	config.OS, config.Architecture = "linux", i.Architecture
	config.Created = v1.Time{Time: epoch}
	config.Config.Entrypoint = i.Entrypoint
	config.Config.User = i.User
	config.Config.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, i.Env...)
	return mutate.ConfigFile(img, config)
}

func (i Image) layers() ([]v1.Layer, error) {
	var layers []v1.Layer
	for _, file := range i.Layers {
		layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", file, err)
		}
		layers = append(layers, layer)
	}
	if len(i.Files) == 0 {
		return layers, nil
	}
	text, err := archive(i.Files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }, tarball.WithMediaType(types.OCILayer))
	return append(layers, layer), err
}

// archive makes a layer of the files and the folders above them.
func archive(files []File) ([]byte, error) {
	all := map[string]File{}
	for _, f := range files {
		f.Path = strings.TrimPrefix(path.Clean(f.Path), "/")
		all[f.Path] = f
	}
	for p := range all {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = File{Path: dir, Mode: 0o755, Dir: true}
			}
		}
	}
	paths := make([]string, 0, len(all))
	for p := range all {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, p := range paths {
		f := all[p]
		h := &tar.Header{Name: p, Mode: f.Mode, Uid: f.UID, Gid: f.UID, ModTime: epoch, Typeflag: tar.TypeReg, Size: int64(len(f.Data)), Format: tar.FormatPAX}
		if f.Dir {
			h.Name, h.Typeflag = p+"/", tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return text.Bytes(), err
}

// ReadFile takes a file of the machine, with its permissions, for path in the image.
func ReadFile(source, path string) (File, error) {
	info, err := os.Stat(source)
	if err != nil {
		return File{}, err
	}
	data, err := os.ReadFile(source)
	return File{Path: path, Mode: int64(info.Mode().Perm()), Data: data}, err
}
