package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/releases"
)

// The media types of an artifact of Flux's.
const (
	fluxConfig  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	fluxContent types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// push pushes a folder as an artifact with a tag, like `flux push artifact`.
func push(r *releases.Registry, dir, repository, tag string) {
	r.Helper()
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	testkit.Must(r, errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), compressed.Close()))
	config, err := json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{Type: "layers"}})
	testkit.Must(r, err)
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: blob(r, repository, fluxConfig, config), Layers: []v1.Descriptor{blob(r, repository, fluxContent, content.Bytes())},
		Annotations: map[string]string{
			"org.opencontainers.image.created": time.Now().UTC().Format(time.RFC3339),
			"org.opencontainers.image.source":  "https://github.com/keyturn/keyturn", "org.opencontainers.image.revision": "main@sha1:0000000",
		},
	})
	testkit.Must(r, err)
	r.Send(http.MethodPut, repository+"/manifests/"+tag, types.OCIManifestSchema1, manifest)
}

func blob(r *releases.Registry, repository string, mediaType types.MediaType, content []byte) v1.Descriptor {
	r.Helper()
	digest, _, err := v1.SHA256(bytes.NewReader(content))
	testkit.Must(r, err)
	r.Send(http.MethodPost, repository+"/blobs/uploads/?digest="+digest.String(), "application/octet-stream", content)
	return v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: digest}
}
