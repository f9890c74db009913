package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// logged returns the levels at which each message is logged, for all messages of the programs.
func logged(t *testing.T) map[string][]string {
	t.Helper()
	call := regexp.MustCompile(`\.(Debug|Info|Warn|Error)Context\([^,\n]+,\s*"([^"\n]+)"`)
	levels := map[string][]string{}
	for _, dir := range []string{"../../cmd", "../../internal"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, found := range call.FindAllStringSubmatch(string(content), -1) {
				levels[found[2]] = append(levels[found[2]], strings.ToUpper(found[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return levels
}

func TestThePageOfTheLogsHasMessagesThatTheProgramsLog(t *testing.T) {
	page, err := os.ReadFile("../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (DEBUG|INFO|WARN|ERROR) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 {
		t.Fatal("the page has no message")
	}
	levels := logged(t)
	for _, row := range rows {
		message, level := row[1], row[2]
		if len(levels[message]) == 0 {
			t.Errorf("no program logs %q", message)
		}
		for _, of := range levels[message] {
			if of != level {
				t.Errorf("%q is logged as %s, and the page says %s", message, of, level)
			}
		}
	}
}
