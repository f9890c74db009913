package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// archive is an OCI archive: its files by name.
type archive map[string][]byte

// descriptor points to a blob of an archive.
type descriptor struct {
	MediaType, Digest string
	Size              int
	Platform          struct{ OS, Architecture string }
	Annotations       map[string]string
}

// manifest is the manifest of an index, an image or an artifact.
type manifest struct {
	MediaType   string
	Manifests   []descriptor
	Config      descriptor
	Layers      []descriptor
	Subject     *descriptor
	Annotations map[string]string
}

// readArchive reads an archive, and checks that each blob is what its name says.
func readArchive(t *testing.T, path string) archive {
	t.Helper()
	file, err := os.Open(path)
	testkit.Must(t, err)
	defer file.Close()
	a := archive{}
	for name, f := range readTar(t, file) {
		if f.header.FileInfo().IsDir() {
			continue
		}
		if digest, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && digest != fmt.Sprintf("%x", sha256.Sum256(f.content)) {
			t.Errorf("%s has other content", name)
		}
		a[name] = f.content
	}
	return a
}

// blob reads the blob of a descriptor, and decodes it into value unless that is nil.
func (a archive) blob(t *testing.T, d descriptor, value any) []byte {
	t.Helper()
	content, ok := a["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	if !ok {
		t.Fatalf("%s %s is not in the archive", d.MediaType, d.Digest)
	}
	if len(content) != d.Size {
		t.Errorf("%s %s: is %d bytes, want %d", d.MediaType, d.Digest, len(content), d.Size)
	}
	if value != nil {
		if err := json.Unmarshal(content, value); err != nil {
			t.Fatalf("%s %s: %v", d.MediaType, d.Digest, err)
		}
	}
	return content
}

// file is a file of a layer.
type file struct {
	header  *tar.Header
	content []byte
}

// unpack lays the layers of an image over each other.
func (a archive) unpack(t *testing.T, m manifest) map[string]file {
	t.Helper()
	files := map[string]file{}
	for _, layer := range m.Layers {
		r, err := gzip.NewReader(bytes.NewReader(a.blob(t, layer, nil)))
		testkit.Must(t, err)
		maps.Copy(files, readTar(t, r))
	}
	return files
}

func readTar(t *testing.T, from io.Reader) map[string]file {
	t.Helper()
	files := map[string]file{}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		testkit.Must(t, err)
		content, err := io.ReadAll(r)
		testkit.Must(t, err)
		files[header.Name] = file{header, content}
	}
}
