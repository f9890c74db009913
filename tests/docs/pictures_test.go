package docs

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestAPictureNeedsNothingElse holds pictures to what code hosts show and screen readers read: no script, nothing from elsewhere, a title
// and a description, and colours for a dark page.
func TestAPictureNeedsNothingElse(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "docs", "images", "*.svg"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got %d pictures, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			content := testkit.ReadFile(t, path)
			has := map[string]bool{}
			for decoder := xml.NewDecoder(strings.NewReader(content)); ; {
				token, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				testkit.Must(t, err)
				element, ok := token.(xml.StartElement)
				if !ok {
					continue
				}
				has[element.Name.Local] = true
				for _, attribute := range element.Attr {
					if name := attribute.Name.Local; strings.HasPrefix(name, "on") || name == "href" || name == "src" {
						t.Errorf("<%s> has %s", element.Name.Local, name)
					}
				}
			}
			if has["script"] || has["foreignObject"] || !has["title"] || !has["desc"] {
				t.Errorf("got the elements %v, want a title, a desc and no script", has)
			}
			for _, want := range []string{`role="img"`, `aria-labelledby="title desc"`, "prefers-color-scheme: dark"} {
				if !strings.Contains(content, want) {
					t.Errorf("want %s", want)
				}
			}
			if strings.Contains(content, "@import") || strings.Contains(content, "@font-face") {
				t.Error("it wants a style or a font from elsewhere")
			}
		})
	}
}
