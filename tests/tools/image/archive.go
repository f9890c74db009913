package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/keyturn/keyturn/tests/tools/image/archive"
)

// writeArchive writes the images of all platforms, with their artifacts, as an OCI archive: an OCI layout in a tar.
func writeArchive(out, short, version string, builds []build, license []byte) error {
	dir, err := os.MkdirTemp(filepath.Dir(out), "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	where, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	notes := annotations(version, builds[0].commit)
	base, err := layer(baseFiles(license), builds[0].commit.date)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var about []v1.Image
	for _, b := range builds {
		img, err := image(b, base, notes)
		if err != nil {
			return err
		}
		size, err := compressed(img)
		if err != nil {
			return err
		}
		fmt.Printf("%s for linux/%s: %.1f MB compressed\n", short, b.architecture, float64(size)/1e6)
		said, err := artifacts(version, short, b, img, notes)
		if err != nil {
			return err
		}
		about = append(about, said...)
		platform := v1.Platform{OS: "linux", Architecture: b.architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	index = mutate.Annotations(index, notes).(v1.ImageIndex)
	full, err := fullName(short)
	if err != nil {
		return err
	}
	names := map[string]string{archive.TagAnnotation: version, archive.NameAnnotation: full}
	if err := where.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	for _, artifact := range about {
		if err := where.AppendImage(artifact); err != nil {
			return err
		}
	}
	return archive.Pack(dir, out, builds[0].commit.date)
}

// fullName returns the name under which a kubelet looks for an image: containerd takes the one in the archive as it is.
func fullName(short string) (string, error) {
	tag, err := name.NewTag(short)
	if err != nil {
		return "", fmt.Errorf("-name: %w", err)
	}
	if host, ok := strings.CutPrefix(tag.Name(), name.DefaultRegistry); ok {
		return "docker.io" + host, nil
	}
	return tag.Name(), nil
}
