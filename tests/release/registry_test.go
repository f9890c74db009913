package release

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/releases"
)

// served has Helm pull the chart. TestFluxInstallsKeyturnForACluster has Flux verify the manifests.
func (r tool) served() {
	t := r.T
	registry := releases.ServeRegistry(t)
	dist := r.Make(registry.Host)
	_, digests := r.Publish(dist)

	helm := build.Tool(t, build.Helm)
	pulled := t.TempDir()
	chart := "oci://" + registry.Host + "/charts/keyturn"
	if out, err := r.Command(helm, "pull", chart, "--version", r.Version[1:], "--plain-http", "--destination", pulled); err != nil {
		t.Fatalf("helm pull: %v\n%s", err, out)
	}
	name := "keyturn-" + r.Version[1:] + ".tgz"
	if string(r.Read(pulled, name)) != string(r.Read(dist, name)) {
		t.Error("helm has pulled another chart than the one in dist")
	}

	public := r.Read(dist, "cosign.pub")
	for repository, tag := range map[string]string{"keyturn/manifests": r.Version, "charts/keyturn": r.Version[1:]} {
		digest := digests[registry.Host+"/"+repository+":"+tag]
		if got := "sha256:" + digestOf(registry.Manifest(repository, tag)); got != digest {
			t.Errorf("%s: got %s, want %s", repository, got, digest)
		}
		signedIn(registry, public, repository, digest)
	}
}

// signedIn checks that a registry has a signature for a digest where cosign looks for it.
func signedIn(t *releases.Registry, public []byte, repository, digest string) {
	t.Helper()
	var signed v1.Manifest
	testkit.Must(t, json.Unmarshal(t.Manifest(repository, strings.Replace(digest, ":", "-", 1)+".sig"), &signed))
	payload := t.Blob(repository, signed.Layers[0].Digest.String())
	if !verifies(t.T, public, payload, signed.Layers[0].Annotations["dev.cosignproject.cosign/signature"]) {
		t.Errorf("%s: the signature is not of the key", repository)
	}
	if !strings.Contains(string(payload), `"docker-manifest-digest":"`+digest+`"`) ||
		!strings.Contains(string(payload), `"docker-reference":"`+t.Host+"/"+repository+`"`) {
		t.Errorf("%s: %s is signed, want %s", repository, payload, digest)
	}
}

// provenance is the type of the statement that a release signs beside the image.
const provenance = "https://slsa.dev/provenance/v1"

// attestedIn checks that a registry has a provenance of an image where cosign looks for it, in an envelope that the key has signed.
func attestedIn(t *releases.Registry, public []byte, repository, digest string) {
	t.Helper()
	var attested v1.Manifest
	testkit.Must(t, json.Unmarshal(t.Manifest(repository, strings.Replace(digest, ":", "-", 1)+".att"), &attested))
	layer := attested.Layers[0]
	if layer.MediaType != "application/vnd.dsse.envelope.v1+json" || layer.Annotations["predicateType"] != provenance {
		t.Errorf("%s: it is a %q with %v", digest, layer.MediaType, layer.Annotations)
	}
	var envelope struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct{ Sig string }
	}
	if err := json.Unmarshal(t.Blob(repository, layer.Digest.String()), &envelope); err != nil || len(envelope.Signatures) != 1 {
		t.Fatalf("%s: %v, and %d signatures", digest, err, len(envelope.Signatures))
	}
	const statement = "application/vnd.in-toto+json"
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(statement), statement, len(envelope.Payload), envelope.Payload)
	if envelope.PayloadType != statement || !verifies(t.T, public, signed, envelope.Signatures[0].Sig) {
		t.Errorf("%s: the signature of the %q is not of the key", digest, envelope.PayloadType)
	}
	if !strings.Contains(string(envelope.Payload), `"sha256":"`+strings.TrimPrefix(digest, "sha256:")+`"`) {
		t.Errorf("%s: %s is signed, want what is about it", digest, envelope.Payload)
	}
}

// namesImage holds the chart and the manifests to the image of the release.
func (r tool) namesImage() {
	t := r.T
	dist := r.Make("registry.example.com")
	helm := build.Tool(t, build.Helm)
	chart, err := r.Command(helm, "template", "keyturn", filepath.Join(dist, "keyturn-"+r.Version[1:]+".tgz"))
	if err != nil {
		t.Fatalf("%v\n%s", err, chart)
	}
	migrated, err := r.Command(helm, "template", "keyturn", filepath.Join(dist, "keyturn-"+r.Version[1:]+".tgz"),
		"--set", "image.repository=ghcr.io/stakater/reloader")
	if err != nil {
		t.Fatalf("%v\n%s", err, migrated)
	}
	for _, one := range []struct {
		name, manifests string
		// containers are those of the watcher, the actuator, NATS beside it and the job, and in the chart the two of helm test.
		containers int
	}{
		{"the chart", chart, 6},
		{"the chart with the default of Reloader's", migrated, 6},
		{"install.yaml", string(r.Read(dist, "install.yaml")), 4},
		{"install-namespaced.yaml", string(r.Read(dist, "install-namespaced.yaml")), 4},
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
		if images != one.containers {
			t.Errorf("%s: has %d images, want %d", one.name, images, one.containers)
		}
	}
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
	testkit.Must(t, err)
	made, err := base64.StdEncoding.DecodeString(signature)
	testkit.Must(t, err)
	digest := sha256.Sum256(content)
	return ecdsa.VerifyASN1(key.(*ecdsa.PublicKey), digest[:], made)
}
