package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

const root = "../.."

// pages are all pages for people, by their path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "deploy/*.md", "examples/*.md"} {
		paths, err := fs.Glob(os.DirFS(root), pattern)
		testkit.Must(t, err)
		for _, path := range paths {
			found[path] = file(t, path)
		}
	}
	return found
}

// filesIn are the files in folders and below whose names end so, by their path from the root.
func filesIn(t *testing.T, suffix string, folders ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range folders {
		err := fs.WalkDir(os.DirFS(root), folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(path, suffix) {
				found[path] = file(t, path)
			}
			return err
		})
		testkit.Must(t, err)
	}
	return found
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// notInAnchors is what GitHub leaves out of the anchor of a heading.
	notInAnchors = regexp.MustCompile(`[^\w\- ]`)
)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	all := pages(t)
	for page, content := range all {
		for _, found := range link.FindAllStringSubmatch(content, -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(found[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s is not there", page, found[1])
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s: %s has no such heading", page, found[1])
			}
		}
	}
}

// TestEveryPageIsLinkedFromTheReadme follows the links from README.md, as a reader does. A link to a folder shows its README.md.
func TestEveryPageIsLinkedFromTheReadme(t *testing.T) {
	all := pages(t)
	reached := map[string]bool{"README.md": true}
	for next := []string{"README.md"}; len(next) > 0; next = next[1:] {
		for _, found := range link.FindAllStringSubmatch(all[next[0]], -1) {
			path, _, _ := strings.Cut(found[1], "#")
			target := filepath.Join(filepath.Dir(next[0]), path)
			if _, isPage := all[target]; !isPage {
				target = filepath.Join(target, "README.md")
			}
			if _, isPage := all[target]; isPage && !reached[target] {
				reached[target] = true
				next = append(next, target)
			}
		}
	}
	for page := range all {
		if !reached[page] {
			t.Errorf("%s: no page that is reached from README.md links to it", page)
		}
	}
}

// TestDecisionsAreShort: whoever questions one reads all of it. The one about dependencies is a table.
func TestDecisionsAreShort(t *testing.T) {
	for path, content := range pages(t) {
		most := 350
		if path == "docs/adr/0001-direct-dependencies.md" {
			most = 750
		}
		if words := len(strings.Fields(content)); strings.HasPrefix(path, "docs/adr/") && words > most {
			t.Errorf("%s has %d words, want at most %d", path, words, most)
		}
	}
}

// anchors returns the anchors that GitHub derives from the headings of a page.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")] = true
	}
	return all
}

var variable = regexp.MustCompile(`KEYTURN_[A-Z_]+[A-Z]`)

// TestEverySettingThatIsNamedExists holds variables in pages and manifests to the references of the flags.
func TestEverySettingThatIsNamedExists(t *testing.T) {
	all := pages(t)
	known := map[string]bool{}
	for _, reference := range []string{
		"docs/reference/flags-actuator.md", "docs/reference/flags-keyturn.md", "docs/reference/flags-watcher.md",
	} {
		for _, name := range variable.FindAllString(all[reference], -1) {
			known[name] = true
		}
	}
	if len(known) < 20 {
		t.Fatalf("the references name %d variables, want all", len(known))
	}
	// Those are no flags: an example of the store's own configuration, what Kubernetes would set, a placeholder, and what tests take.
	for _, name := range []string{"KEYTURN_AUDIT_TOKEN", "KEYTURN_NATS_PORT", "KEYTURN_FLAG", "KEYTURN_FLOOD", "KEYTURN_RELOAD_MEASURED"} {
		known[name] = true
	}
	maps.Copy(all, filesIn(t, "", "deploy"))
	for page, content := range all {
		for _, name := range variable.FindAllString(content, -1) {
			if !known[name] {
				t.Errorf("%s: %s is no flag's", page, name)
			}
		}
	}
}
