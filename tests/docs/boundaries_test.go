package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEachBoundaryNamesATestThatExists holds the table of boundaries in docs/security.md to the tests.
func TestEachBoundaryNamesATestThatExists(t *testing.T) {
	_, table, found := strings.Cut(pages(t)["docs/security.md"], "\n## Boundaries and their tests\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(table, -1)
	if !found || len(named) < 5 {
		t.Fatalf("got %d tests in the table, want one for each boundary", len(named))
	}
	code := testCode(t)
	for _, test := range named {
		if !strings.Contains(code, "\nfunc "+test[1]+"(") {
			t.Errorf("docs/security.md names %s, which is not there", test[1])
		}
	}
}

// testCode returns all tests.
func testCode(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"internal", "tests"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			all.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
