package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
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
	// The annotations by which OCI tools and containerd find the image in the archive.
	names := map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": full}
	if err := where.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	for _, artifact := range about {
		if err := where.AppendImage(artifact); err != nil {
			return err
		}
	}
	return pack(dir, out, builds[0].commit.date)
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

// pack writes a folder as a reproducible tar.
func pack(dir, out string, modified time.Time) (err error) {
	archive, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := archive.Close(); err == nil {
			err = closeErr
		}
	}()
	w := tar.NewWriter(archive)
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header := tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(name) + "/", Mode: 0o755, ModTime: modified, Format: tar.FormatPAX}
		if entry.IsDir() {
			return w.WriteHeader(&header)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeReg, filepath.ToSlash(name), 0o644, info.Size()
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		content, err := os.Open(path)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(w, content)
		return err
	}); err != nil {
		return err
	}
	return w.Close()
}
