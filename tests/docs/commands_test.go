package docs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit/docpages"
)

// TestEveryCommandOfAPageIsRunByATestOrSaysWhyNot holds the list of pages to the pages, both ways.
func TestEveryCommandOfAPageIsRunByATestOrSaysWhyNot(t *testing.T) {
	code := strings.Join(slices.Collect(maps.Values(filesIn(t, "_test.go", "internal", "tests"))), "\n")
	all := pages(t)
	for path, content := range all {
		tested, known := docpages.Tested[path]
		used := map[string]bool{}
		for _, command := range docpages.Commands(content) {
			for beginning := range tested.NotRun {
				used[beginning] = used[beginning] || strings.HasPrefix(command.Line, beginning)
			}
			if !command.Inline && tested.Test == "" && tested.Why(command.Line) == "" {
				t.Errorf("%s: no test runs %q: have one run it, or say why not in docpages.Tested", path, command.Line)
			}
		}
		for beginning := range tested.NotRun {
			if !used[beginning] {
				t.Errorf("%s: no command begins with %q", path, beginning)
			}
		}
		if known && tested.Test != "" && !strings.Contains(code, "\nfunc "+tested.Test+"(") {
			t.Errorf("%s: there is no test %s", path, tested.Test)
		}
	}
	for path := range docpages.Tested {
		if _, found := all[path]; !found {
			t.Errorf("there is no page %s", path)
		}
	}
}
