package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/keyturn/keyturn/tests/tools/image/archive"
)

// named is something with its name in the registry.
type named struct {
	tag  name.Tag
	what v1.Image
}

// writeLayout writes an OCI archive.
func writeLayout(out string, modified time.Time, all []named) error {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	where, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, one := range all {
		names := map[string]string{archive.TagAnnotation: one.tag.TagStr(), archive.NameAnnotation: one.tag.Name()}
		if err := where.AppendImage(one.what, layout.WithAnnotations(names)); err != nil {
			return err
		}
	}
	return archive.Pack(dir, out, modified)
}

// readLayout reads an OCI archive by way of a folder, which the caller removes.
func readLayout(path, dir string) (v1.ImageIndex, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := tar.NewReader(file)
	for header, err := r.Next(); !errors.Is(err, io.EOF); header, err = r.Next() {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if header.FileInfo().IsDir() {
			if err := root.Mkdir(filepath.Clean(header.Name), 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			continue
		}
		if err := unpack(root, header.Name, r); err != nil {
			return nil, err
		}
	}
	return layout.ImageIndexFromPath(dir)
}

func unpack(root *os.Root, name string, content io.Reader) error {
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// tagOf returns the name of an entry of an OCI archive. What has none, such as an SBOM, is about the entry before it.
func tagOf(entry v1.Descriptor) (tag name.Tag, found bool, err error) {
	full, found := entry.Annotations[archive.NameAnnotation]
	if !found {
		return name.Tag{}, false, nil
	}
	tag, err = name.NewTag(full)
	return tag, true, err
}
