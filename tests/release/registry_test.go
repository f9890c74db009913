package release

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// served has Helm pull the chart. TestFluxInstallsKeyturnForACluster has Flux verify the manifests.
func (r tool) served() {
	t := r.T
	host, client := serveRegistry(t)
	dist := r.Make(host)
	_, digests := r.Publish(dist)

	helm, err := build.Binary(t.Context(), t.Output(), build.Helm)
	if err != nil {
		t.Fatal(err)
	}
	pulled := t.TempDir()
	chart := "oci://" + host + "/charts/keyturn"
	if out, err := r.Command(helm, "pull", chart, "--version", r.Version[1:], "--plain-http", "--destination", pulled); err != nil {
		t.Fatalf("helm pull: %v\n%s", err, out)
	}
	name := "keyturn-" + r.Version[1:] + ".tgz"
	if string(r.Read(pulled, name)) != string(r.Read(dist, name)) {
		t.Error("helm has pulled another chart than the one in dist")
	}

	public := r.Read(dist, "cosign.pub")
	for repository, tag := range map[string]string{"keyturn/manifests": r.Version, "charts/keyturn": r.Version[1:]} {
		digest := digests[host+"/"+repository+":"+tag]
		if got := "sha256:" + digestOf(get(t, client, "http://"+host+"/v2/"+repository+"/manifests/"+tag)); got != digest {
			t.Errorf("%s: got %s, want %s", repository, got, digest)
		}
		signedIn(t, client, public, host, repository, digest)
	}
}

// serveRegistry serves one on loopback, without TLS.
func serveRegistry(t *testing.T) (host string, client *http.Client) {
	t.Helper()
	return serveRegistryBehind(t, func(_ *http.Request, next http.Handler) http.Handler { return next })
}

// serveRegistryBehind does the same, with what answers each request.
func serveRegistryBehind(t *testing.T, gate func(r *http.Request, next http.Handler) http.Handler) (host string, client *http.Client) {
	t.Helper()
	next := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gate(r, next).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), server.Client()
}

// signedIn checks that a registry has a signature for a digest where cosign looks for it.
func signedIn(t *testing.T, client *http.Client, public []byte, host, repository, digest string) {
	t.Helper()
	at := "http://" + host + "/v2/" + repository
	var signed v1.Manifest
	if err := json.Unmarshal(get(t, client, at+"/manifests/"+strings.Replace(digest, ":", "-", 1)+".sig"), &signed); err != nil {
		t.Fatal(err)
	}
	payload := get(t, client, at+"/blobs/"+signed.Layers[0].Digest.String())
	if !verifies(t, public, payload, signed.Layers[0].Annotations["dev.cosignproject.cosign/signature"]) {
		t.Errorf("%s: the signature is not of the key", repository)
	}
	if !strings.Contains(string(payload), `"docker-manifest-digest":"`+digest+`"`) ||
		!strings.Contains(string(payload), `"docker-reference":"`+host+"/"+repository+`"`) {
		t.Errorf("%s: %s is signed, want %s", repository, payload, digest)
	}
}

// namesImage holds the chart and the manifests to the image of the release.
func (r tool) namesImage() {
	t := r.T
	dist := r.Make("registry.example.com")
	helm, err := build.Binary(t.Context(), t.Output(), build.Helm)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := r.Command(helm, "template", "keyturn", filepath.Join(dist, "keyturn-"+r.Version[1:]+".tgz"))
	if err != nil {
		t.Fatalf("%v\n%s", err, chart)
	}
	for _, one := range []struct {
		name, manifests string
		// pods are those of the watcher, the actuator and the job, and in the chart the two of helm test.
		pods int
	}{
		{"the chart", chart, 5},
		{"install.yaml", string(r.Read(dist, "install.yaml")), 3},
		{"install-namespaced.yaml", string(r.Read(dist, "install-namespaced.yaml")), 3},
	} {
		images := 0
		for line := range strings.Lines(one.manifests) {
			image, found := strings.CutPrefix(strings.TrimSpace(strings.ReplaceAll(line, `"`, "")), "image: ")
			if !found {
				continue
			}
			if images++; image != "registry.example.com/keyturn:"+r.Version {
				t.Errorf("%s: has the image %s", one.name, image)
			}
		}
		if images != one.pods {
			t.Errorf("%s: has %d images, want %d", one.name, images, one.pods)
		}
	}
}

func get(t *testing.T, client *http.Client, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	return content
}

func digestOf(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// verifies reports whether a signature in base64 is of a key in PEM, for a content.
func verifies(t *testing.T, public, content []byte, signature string) bool {
	t.Helper()
	block, _ := pem.Decode(public)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	made, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(content)
	return ecdsa.VerifyASN1(key.(*ecdsa.PublicKey), digest[:], made)
}
