package image

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	root    = "../.."
	version = "v1.2.3-test"
	name    = "registry.example.com/keyturn:" + version
)

func TestTheImage(t *testing.T) {
	dir := t.TempDir()
	command(t, "make", "-C", root, "image", "VERSION="+version, "IMAGE="+name, "IMAGE_DIR="+dir)
	path := filepath.Join(dir, "keyturn.tar")
	a := readArchive(t, path)
	var top, index manifest
	testkit.Must(t, json.Unmarshal(a["index.json"], &top))
	a.blob(t, top.Manifests[0], &index)
	stamps := stampsOf(t, filepath.Join(dir, "linux_amd64", "watcher"))

	t.Run("is found by its name in the archive", func(t *testing.T) {
		want := map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": name}
		if diff := cmp.Diff(want, top.Manifests[0].Annotations); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("says what it is made of", func(t *testing.T) {
		for key, want := range map[string]string{"version": version, "revision": stamps["vcs.revision"], "created": stamps["vcs.time"]} {
			if got := index.Annotations["org.opencontainers.image."+key]; got != want || want == "" {
				t.Errorf("%s: got %q, want %q", key, got, want)
			}
		}
	})
	var platforms []string
	for _, d := range index.Manifests {
		platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
		t.Run(d.Platform.Architecture, func(t *testing.T) {
			t.Parallel()
			checkImage(t, a, d, index.Annotations)
		})
	}
	testkit.WantEqual(t, "platforms", []string{"linux/amd64", "linux/arm64"}, platforms)
	t.Run("has an SBOM and a provenance for each platform", func(t *testing.T) {
		if len(top.Manifests) != 1+2*len(index.Manifests) {
			t.Fatalf("the archive has %d manifests, want the image and two artifacts of each of %d platforms", len(top.Manifests), len(index.Manifests))
		}
		for i, d := range index.Manifests {
			checkSBOM(t, a, top.Manifests[1+2*i], d, filepath.Join(dir, "linux_"+d.Platform.Architecture))
			checkProvenance(t, a, top.Manifests[2+2*i], d, index.Annotations["org.opencontainers.image.revision"])
		}
	})
	t.Run("has the modules that are listed", func(t *testing.T) { checkModules(t, dir) })
	pack := func(t *testing.T, name string) string {
		t.Helper()
		again := filepath.Join(t.TempDir(), "again.tar")
		said := command(t, "go", "run", "-C", filepath.Join(root, "tests", "tools", "image"), ".", "-version", version, "-name", name,
			"-license", absolute(t, filepath.Join(root, "LICENSE")), "-binaries", dir, "-out", again)
		if size := name + " for linux/amd64: "; !strings.Contains(said, size) || !strings.Contains(said, " MB compressed\n") {
			t.Errorf("it says %q, want its size after %q", said, size)
		}
		return again
	}
	t.Run("is the same when it is packed again", func(t *testing.T) {
		if digest(t, path) != digest(t, pack(t, name)) {
			t.Error("the archives differ")
		}
	})
	t.Run("has the name by which a kubelet looks for a short one", func(t *testing.T) {
		var short manifest
		testkit.Must(t, json.Unmarshal(readArchive(t, pack(t, "keyturn:devel"))["index.json"], &short))
		if got, want := short.Manifests[0].Annotations["io.containerd.image.name"], "docker.io/library/keyturn:devel"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func checkImage(t *testing.T, a archive, d descriptor, notes map[string]string) {
	var m manifest
	a.blob(t, d, &m)
	var config struct {
		OS, Architecture string
		Created          time.Time
		Config           struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	a.blob(t, m.Config, &config)
	if config.OS != "linux" || config.Architecture != d.Platform.Architecture || len(config.RootFS.DiffIDs) != len(m.Layers) {
		t.Errorf("unexpected configuration %+v", config)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("user: got %q", config.Config.User)
	}
	// So that it runs with the arguments of Reloader's container, which has no command.
	testkit.WantEqual(t, "entrypoint", []string{"keyturn", "reloader"}, config.Config.Entrypoint)
	if diff := cmp.Diff(notes, m.Annotations); diff != "" {
		t.Errorf("annotations (-index +image):\n%s", diff)
	}
	if diff := cmp.Diff(notes, config.Config.Labels); diff != "" {
		t.Errorf("labels (-index +image):\n%s", diff)
	}

	files := a.unpack(t, m)
	var regular []string
	for name, f := range files {
		// Everybody may write to the folder for temporary files, and to nothing else.
		shared := name == "tmp/" && f.header.Mode == 0o1777
		if f.header.Uid != 0 || f.header.Gid != 0 || f.header.Mode&0o022 != 0 && !shared || !f.header.ModTime.Equal(config.Created) {
			t.Errorf("%s: unexpected %+v", name, f.header)
		}
		if !f.header.FileInfo().IsDir() {
			regular = append(regular, name)
		}
	}
	slices.Sort(regular)
	want := []string{
		"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "licenses/keyturn/LICENSE", "usr/local/bin/actuator", "usr/local/bin/keyturn",
		"usr/local/bin/watcher",
	}
	testkit.WantEqual(t, "files", want, regular)
	if !x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].content) {
		t.Error("there are no certificate authorities")
	}
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/"+d.Platform.Architecture {
		return
	}
	for _, program := range []string{"actuator", "keyturn", "watcher"} {
		checkProgram(t, program, files["usr/local/bin/"+program])
	}
}

// checkProgram runs a program of the image.
func checkProgram(t *testing.T, program string, f file) {
	path := filepath.Join(t.TempDir(), program)
	testkit.Must(t, os.WriteFile(path, f.content, os.FileMode(f.header.Mode)))
	stamps := stampsOf(t, path)
	out := command(t, path, "--version")
	commit := "commit " + stamps["vcs.revision"]
	if stamps["vcs.modified"] == "true" {
		commit += " with changes"
	}
	if want := program + " version " + version + " (" + commit + ", of " + stamps["vcs.time"] + ", " + runtime.Version() + ")\n"; out != want {
		t.Errorf("--version: got %q, want %q", out, want)
	}
}

func checkSBOM(t *testing.T, a archive, d, subject descriptor, binaries string) {
	t.Helper()
	var m manifest
	a.blob(t, d, &m)
	if m.Subject == nil || m.Subject.Digest != subject.Digest {
		t.Errorf("the artifact is about %v, want %s", m.Subject, subject.Digest)
	}
	var bom struct {
		BOMFormat    string
		Components   []struct{ Type, Name, Version, Purl string }
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	a.blob(t, m.Layers[0], &bom)
	if bom.BOMFormat != "CycloneDX" || m.Config.MediaType != "application/vnd.cyclonedx+json" {
		t.Errorf("format: got %q, media type %q", bom.BOMFormat, m.Config.MediaType)
	}
	known := map[string]bool{}
	for _, component := range bom.Components {
		known[component.Purl] = true
	}
	for _, dependency := range bom.Dependencies {
		info, err := buildinfo.ReadFile(filepath.Join(binaries, dependency.Ref))
		testkit.Must(t, err)
		want := []string{"pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}
		for _, module := range info.Deps {
			want = append(want, "pkg:golang/"+module.Path+"@"+module.Version)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, dependency.DependsOn); diff != "" {
			t.Errorf("modules of the %s (-want +got):\n%s", dependency.Ref, diff)
		}
		for _, purl := range dependency.DependsOn {
			if !known[purl] {
				t.Errorf("%s is no component", purl)
			}
		}
	}
	if len(bom.Dependencies) != 3 {
		t.Errorf("got %d programs, want 3", len(bom.Dependencies))
	}
}

// command runs a program and returns its output.
func command(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	// The flags of this test run, such as -race, must not affect its builds.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

func stampsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	info, err := buildinfo.ReadFile(path)
	testkit.Must(t, err)
	stamps := map[string]string{}
	for _, setting := range info.Settings {
		stamps[setting.Key] = setting.Value
	}
	return stamps
}

func digest(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	return sha256.Sum256([]byte(testkit.ReadFile(t, path)))
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	testkit.Must(t, err)
	return path
}
