package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	containers "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types of an artifact of Flux's.
const (
	fluxConfig  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	fluxContent types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// registry is one of OCI artifacts, on loopback, without TLS.
type registry struct {
	*testing.T
	// host is its address.
	host   string
	client *http.Client
}

func serveRegistry(t *testing.T) *registry {
	t.Helper()
	server := httptest.NewServer(containers.New(containers.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
	t.Cleanup(server.Close)
	return &registry{T: t, host: server.Listener.Addr().String(), client: server.Client()}
}

// push pushes a folder as an artifact with a tag, like `flux push artifact`.
func (r *registry) push(dir, repository, tag string) {
	r.Helper()
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	if err := errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), compressed.Close()); err != nil {
		r.Fatal(err)
	}
	config, err := json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		r.Fatal(err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: r.blob(repository, fluxConfig, config), Layers: []v1.Descriptor{r.blob(repository, fluxContent, content.Bytes())},
		Annotations: map[string]string{
			"org.opencontainers.image.created": time.Now().UTC().Format(time.RFC3339),
			"org.opencontainers.image.source":  "https://github.com/keyturn/keyturn", "org.opencontainers.image.revision": "main@sha1:0000000",
		},
	})
	if err != nil {
		r.Fatal(err)
	}
	r.send(http.MethodPut, repository+"/manifests/"+tag, types.OCIManifestSchema1, manifest)
}

func (r *registry) blob(repository string, mediaType types.MediaType, content []byte) v1.Descriptor {
	r.Helper()
	digest := r.digest(content)
	r.send(http.MethodPost, repository+"/blobs/uploads/?digest="+digest.String(), "application/octet-stream", content)
	return v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: digest}
}

func (r *registry) digest(content []byte) v1.Hash {
	r.Helper()
	hash, _, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		r.Fatal(err)
	}
	return hash
}

// remove removes a tag, as a maintainer may.
func (r *registry) remove(repository, tag string) {
	r.Helper()
	r.send(http.MethodDelete, repository+"/manifests/"+tag, "", nil)
}

func (r *registry) send(method, path string, mediaType types.MediaType, content []byte) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, "http://"+r.host+"/v2/"+path, bytes.NewReader(content))
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("Content-Type", string(mediaType))
	response, err := r.client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	if said, err := io.ReadAll(response.Body); err != nil || response.StatusCode/100 != 2 {
		r.Fatalf("%s %s: %s, %v: %s", method, path, response.Status, err, said)
	}
}
