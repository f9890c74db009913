package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the id of the user and group that the programs run as, the same as in distroless images.
const user = "65532"

// file is one regular file of a layer, or a folder if its path ends in a slash.
type file struct {
	path    string
	mode    int64
	content []byte
}

// baseFiles are the files that a static program expects of a system: users, groups, certificate authorities and a folder for its own.
func baseFiles(license []byte) []file {
	return []file{
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:" + user + ":\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:" + user + ":" + user + ":nonroot:/home/nonroot:/sbin/nologin\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots()},
		{"licenses/keyturn/LICENSE", 0o644, license},
		// A program with NATS in its process keeps its state there by default.
		{"tmp/", 0o1777, nil},
	}
}

// roots returns Mozilla's certificate authorities in PEM, without those that it trusts under conditions that PEM cannot express.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // A buffer takes everything.
		}
	}
	return out.Bytes()
}

func programFiles(b build) ([]file, error) {
	var files []file
	for _, program := range programs {
		content, err := os.ReadFile(filepath.Join(b.folder, program))
		if err != nil {
			return nil, err
		}
		files = append(files, file{"usr/local/bin/" + program, 0o755, content})
	}
	return files, nil
}

// layer returns a layer of files and their folders, all with the same time and owned by root.
func layer(files []file, modified time.Time) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, folder := range folders(files) {
		header := tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: modified, Format: tar.FormatPAX}
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if strings.HasSuffix(f.path, "/") {
			header := tar.Header{Typeflag: tar.TypeDir, Name: f.path, Mode: f.mode, ModTime: modified, Format: tar.FormatPAX}
			if err := w.WriteHeader(&header); err != nil {
				return nil, err
			}
			continue
		}
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: modified, Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func folders(files []file) []string {
	var all []string
	for _, f := range files {
		for folder := path.Dir(strings.TrimSuffix(f.path, "/")); folder != "."; folder = path.Dir(folder) {
			all = append(all, folder)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
