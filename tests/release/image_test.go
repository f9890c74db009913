package release

import (
	"archive/tar"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/releases"
)

// publishesTheImage publishes an image for two platforms with an artifact about each of them, in an archive like that of `make image`.
func (r tool) publishesTheImage() {
	t := r.T
	registry := releases.ServeRegistry(t)
	name := registry.Host + "/keyturn:" + r.Version
	image := newFakeImage(t, name, "one")
	dist := r.Make(registry.Host, "-image", image.archive)
	names, digests := r.Publish(dist)

	if got := digests[name]; got != image.index {
		t.Errorf("%s: got %s, want %s", name, got, image.index)
	}
	for _, digest := range append(image.parts, image.index) {
		if got := "sha256:" + digestOf(registry.Manifest("keyturn", digest)); got != digest {
			t.Errorf("got %s, want %s", got, digest)
		}
	}
	signedIn(registry, r.Read(dist, "cosign.pub"), "keyturn", image.index)
	for _, platform := range image.platforms {
		attestedIn(registry, r.Read(dist, "cosign.pub"), "keyturn", platform)
	}

	t.Run("after all signatures, and before what names it", func(t *testing.T) {
		if !slices.IsSortedFunc(names, func(a, b string) int { return cmp.Compare(turn(a), turn(b)) }) || turn(names[0]) != 0 || turn(names[len(names)-1]) != 2 {
			t.Errorf("got the order\n%s", strings.Join(names, "\n"))
		}
	})
	t.Run("once", func(t *testing.T) {
		if again, _ := r.In(t).Publish(dist); len(again) != 0 {
			t.Errorf("pushed again: %v", again)
		}
	})
	t.Run("and goes on where it was interrupted", func(t *testing.T) {
		signature := strings.Replace(image.index, ":", "-", 1) + ".sig"
		registry.In(t).Remove("keyturn", signature)
		pushed, _ := r.In(t).Publish(dist)
		if !slices.Equal(pushed, []string{registry.Host + "/keyturn:" + signature}) {
			t.Errorf("got %v, want only %s", pushed, signature)
		}
	})
	t.Run("and no other one under its tag", func(t *testing.T) {
		other := r.In(t).Make(registry.Host, "-image", newFakeImage(t, name, "two").archive)
		// It would be pushed beside the image.
		registry.In(t).Remove("keyturn/manifests", r.Version)
		out, err := r.In(t).TryPublish(other)
		want := "error: " + name + " is published already, with the digest " + image.index
		if err == nil || !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("got %v and\n%s\nwant one line with %q", err, out, want)
		}
		if got := "sha256:" + digestOf(registry.In(t).Manifest("keyturn", r.Version)); got != image.index {
			t.Errorf("the tag is of %s now, want %s", got, image.index)
		}
	})
}

// publishesWhereReadingIsForbidden publishes to registries that do not say what they have.
func (r tool) publishesWhereReadingIsForbidden() {
	forbidden := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	isOfManifest := regexp.MustCompile("^(.*)/manifests/([^/]+)$")
	reads := func(q *http.Request) bool {
		return isOfManifest.MatchString(q.URL.Path) && (q.Method == http.MethodHead || q.Method == http.MethodGet)
	}
	repository := func(q *http.Request) string { return isOfManifest.ReplaceAllString(q.URL.Path, "$1") }
	r.Run("before the first push", func(t *testing.T) {
		var pushed sync.Map
		registry := releases.ServeRegistryBehind(t, func(q *http.Request, next http.Handler) http.Handler {
			if _, there := pushed.Load(repository(q)); reads(q) && !there {
				return forbidden
			}
			if q.Method == http.MethodPut && isOfManifest.MatchString(q.URL.Path) {
				pushed.Store(repository(q), true)
			}
			return next
		})
		dist := r.In(t).Make(registry.Host)
		if names, _ := r.In(t).Publish(dist); len(names) == 0 {
			t.Error("nothing is published")
		}
		if again, _ := r.In(t).Publish(dist); len(again) != 0 {
			t.Errorf("pushed again: %v", again)
		}
	})
	r.Run("to whoever may only push", func(t *testing.T) {
		registry := releases.ServeRegistryBehind(t, func(q *http.Request, next http.Handler) http.Handler {
			if reads(q) {
				return forbidden
			}
			if q.Method == http.MethodPut && isOfManifest.MatchString(q.URL.Path) && !strings.Contains(q.URL.Path, "/manifests/sha256:") {
				t.Errorf("%s is pushed, which may replace another one", q.URL.Path)
			}
			return next
		})
		out, err := r.In(t).TryPublish(r.In(t).Make(registry.Host))
		if err == nil || !strings.Contains(out, "log in with the right to pull") || strings.Count(out, "\n") != 1 {
			t.Errorf("got %v and\n%s", err, out)
		}
	})
}

// turn returns when something is to appear in a registry: a signature first, then the image with what is about it, then what names the image.
func turn(name string) int {
	switch {
	case strings.HasSuffix(name, ".sig"), strings.HasSuffix(name, ".att"):
		return 0
	case strings.Contains(name, "/keyturn:") && !strings.Contains(name, "/charts/"), strings.Contains(name, "/keyturn@"):
		return 1
	}
	return 2
}

// fakeImage is an archive, and the digests of what is in it.
type fakeImage struct {
	archive, index string
	// parts are the images of the platforms, and what is about them.
	parts, platforms []string
}

// newFakeImage makes an archive of an image that has a text in place of programs.
func newFakeImage(t *testing.T, name, content string) fakeImage {
	t.Helper()
	dir := t.TempDir()
	blob := func(mediaType types.MediaType, content string) v1.Descriptor {
		digest := digestOf([]byte(content))
		testkit.WriteFile(t, filepath.Join(dir, "blobs", "sha256", digest), content)
		return v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: v1.Hash{Algorithm: "sha256", Hex: digest}}
	}
	encode := func(value any) string {
		encoded, err := json.Marshal(value)
		testkit.Must(t, err)
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
		about = append(about, manifest("application/vnd.cyclonedx+json", &platform, "made of "+content),
			manifest("application/vnd.in-toto+json", &platform, encode(map[string]any{
				"predicateType": provenance, "subject": []map[string]any{{"digest": map[string]string{"sha256": platform.Digest.Hex}}},
			})))
		image.platforms = append(image.platforms, platform.Digest.String())
		platform.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
		platforms = append(platforms, platform)
	}
	index := blob(types.OCIImageIndex, encode(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: platforms}))
	image.index = index.Digest.String()
	index.Annotations = map[string]string{"io.containerd.image.name": name}
	testkit.WriteFile(t, filepath.Join(dir, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`)
	testkit.WriteFile(t, filepath.Join(dir, "index.json"), encode(v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: append([]v1.Descriptor{index}, about...),
	}))

	image.archive = filepath.Join(t.TempDir(), "keyturn.tar")
	file, err := os.Create(image.archive)
	testkit.Must(t, err)
	packed := tar.NewWriter(file)
	testkit.Must(t, errors.Join(packed.AddFS(os.DirFS(dir)), packed.Close(), file.Close()))
	return image
}
