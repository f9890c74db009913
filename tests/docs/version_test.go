package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// version is a reference to a version of Keyturn's: what stands before it, and the version without its v. Between releases the image of a
// checkout is "devel", and the branch "main" is none.
var version = regexp.MustCompile(`(keyturn/keyturn/[\w./-]*\?ref=v?|deploy/\.\.\.\?ref=v?|repoURL: https://github\.com/keyturn/keyturn\n *targetRevision: v?|` +
	`app\.kubernetes\.io/version: v|\bVERSION=v|newTag: v|image\.tag=v|\btag: v|keyturn(?:\.tar|/manifests)?:v|keyturn[-_]v?|charts/keyturn --version |(?:actuator|watcher) version v|keyturn/keyturn/(?:blob|releases/download)/v)` +
	`(main\b|\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?)`)

// TestReferencesNameTheVersionOfTheChart holds every reference to a release to the version in deploy/chart/Chart.yaml. With -update it writes them.
func TestReferencesNameTheVersionOfTheChart(t *testing.T) {
	bare := strings.TrimPrefix(testkit.Version(t, root), "v")
	found := 0
	for path, content := range releasedFiles(t) {
		found += len(version.FindAllString(content, -1))
		named := naming(content, bare)
		// A source of Flux that follows a branch has manifests of which no release has the image.
		if strings.Contains(path, "/flux/") && regexp.MustCompile(`branch: |newTag: devel|tag: devel`).MatchString(content) {
			t.Errorf("%s: is not pinned to a release", path)
		}
		if strings.HasSuffix(path, "/Chart.yaml") && strings.Contains(content, "/blob/main/") {
			t.Errorf("%s: links to pages that are of a later version than the chart", path)
		}
		testkit.Golden(t, filepath.Join(root, path), []byte(named))
	}
	if found < 20 {
		t.Errorf("got %d references, want all", found)
	}
}

// naming returns a content with each reference to the version.
func naming(content, bare string) string {
	return version.ReplaceAllStringFunc(content, func(reference string) string {
		before := version.FindStringSubmatch(reference)[1]
		if strings.HasSuffix(before, "=") || strings.HasSuffix(before, "Revision: ") {
			before += "v"
		}
		return before + bare
	})
}

func TestAReleaseAfterAPreReleaseNamesItselfAlone(t *testing.T) {
	bare := strings.TrimPrefix(testkit.Version(t, root), "v")
	for path, content := range releasedFiles(t) {
		if !version.MatchString(content) {
			continue // Looking for references takes seconds with the race detector, and there is nothing to name.
		}
		for _, before := range []string{"9.9.9-rc.1", "9.9.9-beta.12", "9.9.9"} {
			if naming(naming(content, before), bare) != content {
				t.Errorf("%s: is not the same after %s", path, before)
			}
		}
	}
}

func TestVersionsOfOtherChartsStay(t *testing.T) {
	for content, want := range map[string]string{
		"helm install keyturn oci://registry.example.com/charts/keyturn --version 0.1.0":       "helm install keyturn oci://registry.example.com/charts/keyturn --version 9.9.9",
		"helm install cert-manager oci://quay.io/jetstack/charts/cert-manager --version 0.1.0": "helm install cert-manager oci://quay.io/jetstack/charts/cert-manager --version 0.1.0",
	} {
		if got := naming(content, "9.9.9"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// releasedFiles are the files that name versions, by their path from the root.
func releasedFiles(t *testing.T) map[string]string {
	t.Helper()
	all := pages(t)
	for path := range all {
		if strings.HasPrefix(path, "docs/adr/") || path == "CHANGELOG.md" {
			delete(all, path)
		}
	}
	maps.Copy(all, filesIn(t, ".yaml", "deploy", "examples"))
	return all
}

// TestAReleaseIsPublishedWhereItIsInstalledFrom holds deploy/flux and the chart to the default of `make release`.
func TestAReleaseIsPublishedWhereItIsInstalledFrom(t *testing.T) {
	registry := regexp.MustCompile(`(?m)^REGISTRY \?= (\S+)$`).FindStringSubmatch(makefile(t))
	if registry == nil {
		t.Fatal("the Makefile has no REGISTRY")
	}
	for path, want := range map[string]string{
		"deploy/flux/cluster/keyturn.yaml": "newName: " + registry[1] + "/keyturn\n", "deploy/flux/oci/source.yaml": "url: oci://" + registry[1] + "/keyturn/manifests\n",
		"deploy/chart/values.yaml": "repository: " + registry[1] + "/keyturn\n", "deploy/chart/Chart.yaml": "image: " + registry[1] + "/keyturn:",
	} {
		if !strings.Contains(file(t, path), want) {
			t.Errorf("%s: want %q", path, want)
		}
	}
}
