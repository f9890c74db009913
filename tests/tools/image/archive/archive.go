// Package archive writes folders as tar archives that are the same, to the byte, on every machine.
package archive

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The annotations by which OCI tools and containerd find what an OCI archive has: the tag, and the whole name.
const (
	TagAnnotation  = "org.opencontainers.image.ref.name"
	NameAnnotation = "io.containerd.image.name"
)

// Pack writes a folder as a file.
func Pack(dir, out string, modified time.Time) (err error) {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	return Write(file, dir, "", modified)
}

// Write writes the content of a folder, each path with the prefix. All of it has the same time, and of the modes only whether a file can be
// executed.
func Write(out io.Writer, dir, prefix string, modified time.Time) error {
	w := tar.NewWriter(out)
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = prefix + filepath.ToSlash(name)
		if entry.IsDir() {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: modified, Format: tar.FormatPAX})
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: modified, Format: tar.FormatPAX}
		if info.Mode()&0o100 != 0 {
			header.Mode = 0o755
		}
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
