package program

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Attributes with different names in two versions of the conventions may mean the same, and a resource has only one schema.
func TestOneVersionOfTheSemanticConventionsIsUsed(t *testing.T) {
	const root, conventions = "../..", "go.opentelemetry.io/otel/semconv/"
	want := "v" + semconv.SchemaURL[strings.LastIndex(semconv.SchemaURL, "/")+1:]
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range file.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			rest, ours := strings.CutPrefix(name, conventions)
			if !ours {
				continue
			}
			found++
			if version, _, _ := strings.Cut(rest, "/"); version != want {
				t.Errorf("%s imports %s, want %s of %s", path, name, want, conventions)
			}
		}
		return nil
	})
	testkit.Must(t, err)
	if found < 2 {
		t.Errorf("%d imports of the conventions were found: the test does not look where they are", found)
	}
}
