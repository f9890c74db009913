package releases

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Registry is one of OCI artifacts, on loopback, without TLS.
type Registry struct {
	*testing.T
	// Host is its address.
	Host   string
	client *http.Client
}

// ServeRegistry serves a registry that is empty.
func ServeRegistry(t *testing.T) *Registry {
	t.Helper()
	return ServeRegistryBehind(t, func(_ *http.Request, next http.Handler) http.Handler { return next })
}

// ServeRegistryBehind does the same, with what answers each request.
func ServeRegistryBehind(t *testing.T, gate func(r *http.Request, next http.Handler) http.Handler) *Registry {
	t.Helper()
	next := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gate(r, next).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	return &Registry{T: t, Host: server.Listener.Addr().String(), client: server.Client()}
}

// In returns the registry for a subtest.
func (r *Registry) In(t *testing.T) *Registry { return &Registry{T: t, Host: r.Host, client: r.client} }

// Manifest returns the manifest of a tag or a digest.
func (r *Registry) Manifest(repository, reference string) []byte {
	r.Helper()
	return r.Send(http.MethodGet, repository+"/manifests/"+reference, "", nil)
}

// Blob returns a blob.
func (r *Registry) Blob(repository, digest string) []byte {
	r.Helper()
	return r.Send(http.MethodGet, repository+"/blobs/"+digest, "", nil)
}

// Remove removes a tag, as a maintainer may.
func (r *Registry) Remove(repository, tag string) {
	r.Helper()
	r.Send(http.MethodDelete, repository+"/manifests/"+tag, "", nil)
}

// Send sends a request, which must succeed, and returns what is answered.
func (r *Registry) Send(method, path string, mediaType types.MediaType, content []byte) []byte {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, "http://"+r.Host+"/v2/"+path, bytes.NewReader(content))
	testkit.Must(r, err)
	request.Header.Set("Content-Type", string(mediaType))
	response, err := r.client.Do(request)
	testkit.Must(r, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		r.Fatalf("%s %s: %s, %v: %s", method, path, response.Status, err, answer)
	}
	return answer
}
