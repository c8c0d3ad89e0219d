// Package publish gives one name to images of several architectures.
package publish

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"dbbench.dev/operator/hack/image/oci"
	"dbbench.dev/operator/hack/image/sbom"
)

// Index is one name for images of several architectures, each with a list of what its
// programs are made of. The list refers to its image, as the OCI specification of
// referrers has it.
type Index struct {
	index v1.ImageIndex
	lists []v1.Image
}

// NewIndex builds images that bear the same tag.
func NewIndex(images []oci.Image) (*Index, error) {
	x := &Index{index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	for _, i := range images {
		img, err := i.Build()
		if err != nil {
			return nil, err
		}
		x.index = mutate.AppendManifests(x.index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: i.Architecture}},
		})
		list, err := list(i, img)
		if err != nil {
			return nil, fmt.Errorf("list the modules of the programs for %s: %w", i.Architecture, err)
		}
		x.lists = append(x.lists, list)
	}
	return x, nil
}

// list is the SBOM of an image, as an image that refers to it.
func list(i oci.Image, of v1.Image) (v1.Image, error) {
	var programs []sbom.Program
	for _, f := range i.Files {
		if !f.Dir && f.Mode&0o111 != 0 {
			programs = append(programs, sbom.Program{Path: f.Path, Data: f.Data})
		}
	}
	text, err := sbom.Of(i.Tag, programs)
	if err != nil {
		return nil, err
	}
	subject, err := partial.Descriptor(of)
	if err != nil {
		return nil, err
	}
	list, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(text, sbom.MediaType))
	if err != nil {
		return nil, err
	}
	// A registry takes the type of the configuration for that of the artifact.
	list = mutate.ConfigMediaType(list, sbom.MediaType)
	return mutate.Subject(list, *subject).(v1.Image), nil
}

// WriteLayout writes all as an OCI image layout into a folder, in place of what a
// layout that is there holds.
func (x *Index) WriteLayout(dir, tag string) error {
	if _, err := layout.FromPath(dir); err == nil {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	names := map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": tag}
	if err := path.AppendIndex(x.index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	for _, l := range x.lists {
		if err := path.AppendImage(l); err != nil {
			return err
		}
	}
	return nil
}

// Push uploads all to the registry that the tag names, with the credentials of
// `docker login`, and returns the digest of the index.
func (x *Index) Push(ctx context.Context, tag string) (digest string, err error) {
	ref, err := name.NewTag(tag, name.StrictValidation)
	if err != nil {
		return "", err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(ref, x.index, options...); err != nil {
		return "", err
	}
	var faults []error
	for _, l := range x.lists {
		hash, err := l.Digest()
		if err == nil {
			err = remote.Write(ref.Digest(hash.String()), l, options...)
		}
		faults = append(faults, err)
	}
	hash, err := x.index.Digest()
	return hash.String(), errors.Join(append(faults, err)...)
}
