package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	securityPage   = "docs/explanation/security.md"
	boundariesPage = "docs/reference/boundaries.md"
)

var (
	namedTest  = regexp.MustCompile("`Test\\w+`")
	linkedTest = regexp.MustCompile("\\[`(Test\\w+)`\\]\\(([^)]+)\\)")
)

// rows returns the rows of all tables of a page, their heads included, as cells.
func rows(page string) [][]string {
	var all [][]string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| ---") {
			all = append(all, strings.Split(strings.Trim(line, "|"), "|"))
		}
	}
	return all
}

// items returns the items of all lists of a page, each as one line.
func items(page string) []string {
	var all []string
	for line := range strings.Lines(page) {
		if item, begins := strings.CutPrefix(line, "- "); begins {
			all = append(all, strings.TrimSpace(item))
		} else if strings.HasPrefix(line, "  ") && len(all) > 0 {
			all[len(all)-1] += " " + strings.TrimSpace(line)
		}
	}
	return all
}

// TestEachBoundaryNamesATestThatExists holds the lists of boundaries to the tests: each item links to one, in the file that has it.
func TestEachBoundaryNamesATestThatExists(t *testing.T) {
	boundaries := items(pages(t)[boundariesPage])
	for _, item := range boundaries {
		boundary, tests, _ := strings.Cut(item, ": ")
		linked := linkedTest.FindAllStringSubmatch(tests, -1)
		if named := namedTest.FindAllString(tests, -1); len(linked) == 0 || len(linked) != len(named) {
			t.Errorf("%q names %d tests, and links to %d of them: want at least one, and a link to each", boundary, len(named), len(linked))
		}
		for _, found := range linked {
			name, path := found[1], filepath.Join(filepath.Dir(boundariesPage), found[2])
			content, err := os.ReadFile(filepath.Join(root, path))
			if err != nil || !strings.Contains(string(content), "\nfunc "+name+"(t *testing.T) {") {
				t.Errorf("%q: %s is not in %s (%v)", boundary, name, path, err)
			}
		}
	}
	if len(boundaries) < 40 {
		t.Errorf("%s has %d boundaries, want all", boundariesPage, len(boundaries))
	}
}

// TestPagesOfSecurityAreShort: an auditor reads each row and boundary, and compares it with others.
func TestPagesOfSecurityAreShort(t *testing.T) {
	const mostOfACell, mostOfThePage = 15, 2200
	all := pages(t)
	table := rows(all[securityPage])
	if len(table) == 0 {
		t.Errorf("%s has no table", securityPage)
	}
	for _, item := range items(all[boundariesPage]) {
		boundary, tests, _ := strings.Cut(item, ": ")
		table = append(table, []string{boundary, tests})
	}
	for _, row := range table {
		for _, cell := range row {
			if words := len(strings.Fields(link.ReplaceAllString(cell, "]"))); words > mostOfACell {
				t.Errorf("a cell or an item has %d words, want at most %d: %s", words, mostOfACell, cell)
			}
		}
	}
	if words := len(strings.Fields(all[securityPage])); words > mostOfThePage {
		t.Errorf("%s has %d words, want at most %d", securityPage, words, mostOfThePage)
	}
}
