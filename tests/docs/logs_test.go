package docs

import (
	"regexp"
	"strings"
	"testing"
)

// logged returns the levels at which each message is logged, for all messages of the programs.
func logged(t *testing.T) map[string][]string {
	t.Helper()
	call := regexp.MustCompile(`\.(Debug|Info|Warn|Error)Context\([^,\n]+,\s*"([^"\n]+)"`)
	levels := map[string][]string{}
	for path, content := range filesIn(t, ".go", "cmd", "internal") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, found := range call.FindAllStringSubmatch(content, -1) {
			levels[found[2]] = append(levels[found[2]], strings.ToUpper(found[1]))
		}
	}
	return levels
}

func TestThePageOfTheLogsHasMessagesThatTheProgramsLog(t *testing.T) {
	page := file(t, "docs/operate/logs.md")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (DEBUG|INFO|WARN|ERROR) \\|").FindAllStringSubmatch(page, -1)
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
