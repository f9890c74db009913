package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/releases"
)

// tool is the tool behind `make release`.
type tool struct{ releases.Tool }

func TestTheRelease(t *testing.T) {
	r := releases.New(t)
	t.Run("is the same each time", func(t *testing.T) { tool{r.In(t)}.sameEachTime() })
	t.Run("is refused", func(t *testing.T) { tool{r.In(t)}.refused() })
	t.Run("has its keys made once", func(t *testing.T) { tool{r.In(t)}.keepsKeys() })
	t.Run("is served by a registry, with its signatures", func(t *testing.T) { tool{r.In(t)}.served() })
	t.Run("publishes the image", func(t *testing.T) { tool{r.In(t)}.publishesTheImage() })
	t.Run("is published where reading is forbidden", func(t *testing.T) { tool{r.In(t)}.publishesWhereReadingIsForbidden() })
	t.Run("names its image", func(t *testing.T) { tool{r.In(t)}.namesImage() })
}

// sameEachTime makes a release twice, with something in place of the plugin.
func (r tool) sameEachTime() {
	t := r.T
	binaries := t.TempDir()
	for _, file := range []string{"linux_amd64/keyturn", "windows_amd64/keyturn.exe"} {
		testkit.WriteFile(t, filepath.Join(binaries, file), "for "+file)
	}
	first := files(r, r.Make("registry.example.com", "-plugin", binaries))
	second := files(r, r.Make("registry.example.com", "-plugin", binaries))
	var names []string
	for name, content := range first {
		names = append(names, name)
		if !bytes.Equal(second[name], content) {
			t.Errorf("%s differs", name)
		}
	}
	want := []string{
		"checksums.txt", "checksums.txt.sig", "cosign.pub", "install-namespaced.yaml", "install.yaml", "keyturn-" + r.Version[1:] + ".tgz",
		"keyturn-" + r.Version + "-artifacts.tar", "keyturn-" + r.Version + "-signatures.tar", "krew.yaml",
		"kubectl-keyturn_" + r.Version + "_linux_amd64.tar.gz", "kubectl-keyturn_" + r.Version + "_windows_amd64.tar.gz", "release-notes.md",
	}
	testkit.WantEqual(t, "files", want, names, sorted)

	t.Run("the checksums are those of the files", func(t *testing.T) {
		lines := strings.Split(strings.TrimSpace(string(first["checksums.txt"])), "\n")
		if len(lines) != len(want)-4 {
			t.Errorf("got %d checksums, want one for each file but the four about them:\n%s", len(lines), first["checksums.txt"])
		}
		for _, line := range lines {
			sum, name, _ := strings.Cut(line, "  ")
			if digestOf(first[name]) != sum {
				t.Errorf("%s has another checksum", name)
			}
		}
	})
	t.Run("the checksums are signed", func(t *testing.T) {
		if !verifies(t, first["cosign.pub"], first["checksums.txt"], string(first["checksums.txt.sig"])) {
			t.Error("the signature is not of the key")
		}
		if verifies(t, first["cosign.pub"], append(first["checksums.txt"], '\n'), string(first["checksums.txt.sig"])) {
			t.Error("the signature is of other checksums, too")
		}
	})
	t.Run("krew finds each archive, and the plugin in it", func(t *testing.T) { krewFinds(t, first, r.Version) })
	t.Run("the notes are the section of the changelog", func(t *testing.T) {
		notes := string(first["release-notes.md"])
		_, section, _ := strings.Cut(string(r.Read(releases.Root, "CHANGELOG.md")), "\n## "+r.Version[1:]+"\n\n")
		section, _, _ = strings.Cut(section, "\n## ")
		pages := "](https://github.com/keyturn/keyturn/blob/" + r.Version + "/"
		if diff := cmp.Diff(section, strings.ReplaceAll(notes, pages, "](")); diff != "" || strings.Contains(notes, "](docs/") {
			t.Errorf("(-section +notes):\n%s\nwant links to %s in\n%s", diff, pages, notes)
		}
	})
}

var sorted = cmp.Transformer("sorted", func(names []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
})

func krewFinds(t *testing.T, release map[string][]byte, version string) {
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal(release["krew.yaml"], &manifest); err != nil || len(manifest.Spec.Platforms) != 2 || manifest.Spec.Version != version {
		t.Fatalf("%v in\n%s", err, release["krew.yaml"])
	}
	for _, platform := range manifest.Spec.Platforms {
		name := platform.URI[strings.LastIndex(platform.URI, "/")+1:]
		if digestOf(release[name]) != platform.SHA256 {
			t.Errorf("%s has another checksum than %s", name, platform.SHA256)
		}
		compressed, err := gzip.NewReader(bytes.NewReader(release[name]))
		testkit.Must(t, err)
		modes := map[string]int64{}
		for archive := tar.NewReader(compressed); ; {
			header, err := archive.Next()
			if err == io.EOF {
				break
			}
			testkit.Must(t, err)
			modes[header.Name] = header.Mode
		}
		if diff := cmp.Diff(map[string]int64{"LICENSE": 0o644, platform.Bin: 0o755}, modes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// refused has the tool make releases that it must not.
func (r tool) refused() {
	next, other, key := r.TempDir(), r.TempDir(), filepath.Join(r.Keys, "cosign.key")
	r.MakeKey(other)
	testkit.Must(r, os.CopyFS(filepath.Join(next, "deploy"), os.DirFS("../../deploy")))
	chart := strings.Replace(string(r.Read(next, "deploy/chart/Chart.yaml")), "\nversion: "+r.Version[1:], "\nversion: 9.9.9", 1)
	for path, content := range map[string]string{"deploy/chart/Chart.yaml": chart, "CHANGELOG.md": "# Changelog\n\n## 9.9.90\n\nLater.\n"} {
		testkit.WriteFile(r.T, filepath.Join(next, path), content)
	}
	without := func(file string) string {
		dir := r.TempDir()
		testkit.Must(r, os.CopyFS(filepath.Join(dir, "deploy/chart"), os.DirFS("../../deploy/chart")))
		r.Prepare(dir)
		testkit.Must(r, os.Remove(filepath.Join(dir, file)))
		return dir
	}
	with := func(file, content string) string {
		dir := without(file)
		testkit.WriteFile(r.T, filepath.Join(dir, file), content)
		return dir
	}
	bare, nobody := without("cosign.pub"), without("MAINTAINERS.md")
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"of no version", []string{"-version", "94d926a6"}, `VERSION: got "94d926a6", want a version like v0.1.0`},
		{"without the v", []string{"-version", r.Version[1:]}, `VERSION: got "` + r.Version[1:] + `", want a version like v0.1.0`},
		{"of half a version", []string{"-version", "v0.1"}, `VERSION: got "v0.1", want a version like v0.1.0`},
		{"with what is no tag", []string{"-version", "v0.1.0+1"}, `VERSION: got "v0.1.0+1", want a version like v0.1.0`},
		{"of a pre-release without a number", []string{"-version", "v0.1.0-rc1"}, `VERSION: got "v0.1.0-rc1", want a version like v0.1.0 or v0.1.0-rc.1`},
		{"of another version than the checkout's", []string{"-version", "v9.9.9"}, "VERSION: got v9.9.9, but this commit is of " + r.Version},
		{"without its section", []string{"-version", "v9.9.9", "-root", next}, `CHANGELOG.md: has no section "## 9.9.9"`},
		{"without a key", []string{"-version", r.Version, "-key", "nowhere"}, "SIGNING_KEY: open nowhere"},
		{"whose key is not in the repository", []string{"-version", r.Version, "-key", key, "-root", bare}, "cosign.pub: is not in the repository"},
		{"with another key", []string{"-version", r.Version, "-key", filepath.Join(other, "cosign.key")}, "SIGNING_KEY: " + other + "/cosign.key is not the private key"},
		{"that nobody maintains", []string{"-version", r.Version, "-root", nobody}, "open " + nobody + "/MAINTAINERS.md: no such file"},
		{
			"whose maintainers have no name",
			[]string{"-version", r.Version, "-root", with("MAINTAINERS.md", "| @OWNER | everything |\n")},
			"MAINTAINERS.md: got @OWNER, want the account of each maintainer: fill it in and commit",
		},
		{
			"whose owners of the code have no name",
			[]string{"-version", r.Version, "-root", with(".github/CODEOWNERS", "* @somebody @OWNER\n")},
			".github/CODEOWNERS: got @OWNER, want",
		},
		{
			"whose badges are of no repository",
			[]string{"-version", r.Version, "-root", with("README.md", "![tests](https://example.com/@REPOSITORY)\n")},
			"README.md: got @REPOSITORY, want the owner and the name of the repository",
		},
		{"with what is no key", []string{"-version", r.Version, "-key", "../../LICENSE"}, "SIGNING_KEY: ../../LICENSE is no key of cosign"},
	} {
		r.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, err := r.In(t).Try(append([]string{"-registry", "registry.example.com", "-out", filepath.Join(t.TempDir(), "dist")}, test.args...)...)
			if err == nil || !strings.Contains(out, "error: "+test.want) || strings.Count(out, "\n") != 1 {
				t.Errorf("got %v and\n%s\nwant one line with %q", err, out, test.want)
			}
		})
	}
}

// keepsKeys has the tool make a pair of keys where one of the pair is already.
func (r tool) keepsKeys() {
	for _, there := range []string{"cosign.key", "cosign.pub"} {
		dir := r.TempDir()
		testkit.WriteFile(r.T, filepath.Join(dir, there), "mine")
		out, err := r.TryMakeKey(dir)
		if err == nil || !strings.Contains(out, there+": file exists") {
			r.Errorf("%s: got %v and %q, want an error", there, err, out)
		}
		if got := files(r, dir); len(got) != 1 || string(got[there]) != "mine" {
			r.Errorf("%s: it is %q now, beside %d other files", there, got[there], len(got)-1)
		}
	}
}

// files returns the files of a release.
func files(r tool, dist string) map[string][]byte {
	r.Helper()
	entries, err := os.ReadDir(dist)
	testkit.Must(r, err)
	all := map[string][]byte{}
	for _, entry := range entries {
		all[entry.Name()] = r.Read(dist, entry.Name())
	}
	return all
}
