package release

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// publishesTheImage publishes an image for two platforms with an artifact about each of them, in an archive like that of `make image`.
func (r tool) publishesTheImage() {
	t := r.T
	host, client := serveRegistry(t)
	name := host + "/keyturn:" + r.Version
	image := newFakeImage(t, name, "one")
	dist := r.Make(host, "-image", image.archive)
	digests := r.Publish(dist)

	if got := digests[name]; got != image.index {
		t.Errorf("%s: got %s, want %s", name, got, image.index)
	}
	at := "http://" + host + "/v2/keyturn/manifests/"
	for _, digest := range append(image.parts, image.index) {
		if got := "sha256:" + digestOf(get(t, client, at+digest)); got != digest {
			t.Errorf("got %s, want %s", got, digest)
		}
	}
	signedIn(t, client, r.Read(dist, "cosign.pub"), host, "keyturn", image.index)

	t.Run("once", func(t *testing.T) {
		if again := r.In(t).Publish(dist); len(again) != 0 {
			t.Errorf("pushed again: %v", again)
		}
	})
	t.Run("and goes on where it was interrupted", func(t *testing.T) {
		signature := "keyturn:" + strings.Replace(image.index, ":", "-", 1) + ".sig"
		remove(t, client, host, signature)
		pushed := r.In(t).Publish(dist)
		if _, found := pushed[host+"/"+signature]; !found || len(pushed) != 1 {
			t.Errorf("got %v, want only %s", pushed, signature)
		}
	})
	t.Run("and no other one under its tag", func(t *testing.T) {
		other := r.In(t).Make(host, "-image", newFakeImage(t, name, "two").archive)
		// It would be pushed before the image.
		remove(t, client, host, "keyturn/manifests:"+r.Version)
		out, err := r.In(t).TryPublish(other)
		want := "error: " + name + " is published already, with the digest " + image.index
		if err == nil || !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("got %v and\n%s\nwant one line with %q", err, out, want)
		}
		if got := "sha256:" + digestOf(get(t, client, at+r.Version)); got != image.index {
			t.Errorf("the tag is of %s now, want %s", got, image.index)
		}
	})
}

// fakeImage is an archive, and the digests of what is in it.
type fakeImage struct {
	archive, index string
	// parts are the images of the platforms, and what is about them.
	parts []string
}

// newFakeImage makes an archive of an image that has a text in place of programs.
func newFakeImage(t *testing.T, name, content string) fakeImage {
	t.Helper()
	dir := t.TempDir()
	blob := func(mediaType types.MediaType, content string) v1.Descriptor {
		digest := digestOf([]byte(content))
		write(t, filepath.Join(dir, "blobs", "sha256", digest), content)
		return v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: v1.Hash{Algorithm: "sha256", Hex: digest}}
	}
	encode := func(value any) string {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	var image fakeImage
	manifest := func(config types.MediaType, subject *v1.Descriptor, text string) v1.Descriptor {
		made := blob(types.OCIManifestSchema1, encode(v1.Manifest{
			SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: blob(config, "{}"), Subject: subject,
			Layers: []v1.Descriptor{blob(types.OCIUncompressedLayer, text)},
		}))
		image.parts = append(image.parts, made.Digest.String())
		return made
	}
	var platforms, about []v1.Descriptor
	for _, architecture := range []string{"amd64", "arm64"} {
		platform := manifest(types.OCIConfigJSON, nil, content+" for "+architecture)
		about = append(about, manifest("application/vnd.cyclonedx+json", &platform, "made of "+content))
		platform.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
		platforms = append(platforms, platform)
	}
	index := blob(types.OCIImageIndex, encode(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: platforms}))
	image.index = index.Digest.String()
	index.Annotations = map[string]string{"io.containerd.image.name": name}
	write(t, filepath.Join(dir, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`)
	write(t, filepath.Join(dir, "index.json"), encode(v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: append([]v1.Descriptor{index}, about...),
	}))

	image.archive = filepath.Join(t.TempDir(), "keyturn.tar")
	file, err := os.Create(image.archive)
	if err != nil {
		t.Fatal(err)
	}
	packed := tar.NewWriter(file)
	if err := errors.Join(packed.AddFS(os.DirFS(dir)), packed.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return image
}

// remove removes a tag from a registry.
func remove(t *testing.T, client *http.Client, host, tagged string) {
	t.Helper()
	repository, tag, _ := strings.Cut(tagged, ":")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+host+"/v2/"+repository+"/manifests/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusAccepted {
		t.Fatalf("removing %s: %s, %v", tagged, response.Status, err)
	}
}
