package docs

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestMakeTestRunsTestsThatExist holds the names in tests/core.txt to tests: go test passes where a name is of none.
func TestMakeTestRunsTestsThatExist(t *testing.T) {
	functions, all, found := functionsOf(t, "tests"), "", 0
	for path, content := range testFiles(t) {
		if filepath.Dir(path) == "tests" {
			all += content
		}
	}
	for line := range strings.Lines(file(t, "tests/core.txt")) {
		name := strings.TrimSpace(line)
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		found++
		if !slices.Contains(functions, name) {
			t.Errorf("tests/core.txt: there is no %s in ./tests", name)
		}
		if later := regexp.MustCompile(`func ` + name + `\(t \*testing\.T\) \{\n(?:\t[^\n]*\n){0,2}\ttestkit\.(Slow|Nightly)\(t\)`); later.MatchString(all) {
			t.Errorf("tests/core.txt: make test skips %s", name)
		}
	}
	if found < 40 {
		t.Errorf("got %d names in tests/core.txt, want those of all promises", found)
	}
}

// TestTestsOfProgramsAreRunEachTime: a test that starts a program compiles it in a child, which Go's cache of results does not see. Of the change of a
// string in internal/sources, for example, ./tests would know nothing.
func TestTestsOfProgramsAreRunEachTime(t *testing.T) {
	if out := output(t, "go", "list", "-deps", "-test", "./tests"); strings.Contains(out, "keyturn/internal/sources\n") {
		t.Error("./tests imports internal/sources: take another example")
	}
	for _, target := range []string{"core", "e2e", "e2e-race", "e2e-nightly", "e2e-oldest"} {
		for command := range strings.Lines(output(t, "make", "--no-print-directory", "-n", target)) {
			if strings.Contains(command, ".ci/gotest") && !strings.Contains(command, " -count=1 ") {
				t.Errorf("make %s takes results from the cache: %s", target, command)
			}
		}
	}
	starts := regexp.MustCompile(`\bbuild\.Program\(|\bprograms\.(Build|New)\(`)
	for path, content := range testFiles(t) {
		// The tests of the package that builds programs compile them only to see that it does.
		if dir := filepath.Dir(path); dir == "tests/testbed/build" || !isTested(t, "unit", dir) || strings.Contains(content, "testkit.Nightly(t)") {
			continue
		}
		if starts.MatchString(content) {
			t.Errorf("%s starts a program, and make unit takes its result from the cache", path)
		}
	}
}

// TestEachTestIsInATier holds the lists of packages in the Makefile to the packages that have tests.
func TestEachTestIsInATier(t *testing.T) {
	for path := range testFiles(t) {
		dir := filepath.Dir(path)
		if !slices.ContainsFunc([]string{"unit", "e2e", "e2e-nightly"}, func(target string) bool { return isTested(t, target, dir) }) {
			t.Errorf("no target of the Makefile runs the tests in %s", dir)
		}
	}
}

// isTested reports whether a target runs the tests in a folder.
func isTested(t *testing.T, target, dir string) bool {
	t.Helper()
	list := regexp.MustCompile(`(?m)^` + map[string]string{"unit": "UNIT", "e2e": "E2E", "e2e-nightly": "NIGHTLY"}[target] + ` := (.*)$`).FindStringSubmatch(makefile(t))
	if list == nil {
		t.Fatalf("the Makefile has no list of packages for %s", target)
	}
	return slices.ContainsFunc(strings.Fields(list[1]), func(pattern string) bool {
		folder, below := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
		return dir == folder || below && strings.HasPrefix(dir, folder+"/")
	})
}

// testFiles are the files with tests of this module, by their path from the root.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	files := filesIn(t, "_test.go", "cmd", "examples", "internal", "tests", "tools")
	maps.DeleteFunc(files, func(path, _ string) bool { return strings.HasPrefix(path, "tests/tools/") }) // modules of their own
	return files
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestNoTestIsNamedTwiceInAFortnight holds .ci/flakes.txt: what fails at times is mended before anything else is built.
func TestNoTestIsNamedTwiceInAFortnight(t *testing.T) {
	last := map[string]time.Time{}
	for line := range strings.Lines(file(t, ".ci/flakes.txt")) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) < 4 {
			t.Errorf(".ci/flakes.txt: %q, want a day, a package, a test and a cause", line)
			continue
		}
		day, err := time.Parse(time.DateOnly, fields[0])
		if err != nil {
			t.Errorf(".ci/flakes.txt: %v", err)
		}
		test := fields[1] + " " + fields[2]
		if before, named := last[test]; named && day.Sub(before).Abs() < 14*24*time.Hour {
			t.Errorf("%s failed on %s and on %s: mend it, or move it to test-nightly, and take its lines out", test, before.Format(time.DateOnly), fields[0])
		}
		last[test] = day
	}
}

// functionsOf returns the names of the tests in a folder.
func functionsOf(t *testing.T, folder string) []string {
	t.Helper()
	var functions []string
	folder = filepath.Clean(folder)
	for path, content := range filesIn(t, "_test.go", folder) {
		if filepath.Dir(path) != folder {
			continue
		}
		for _, function := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(content, -1) {
			functions = append(functions, function[1])
		}
	}
	if len(functions) == 0 {
		t.Fatalf("%s has no tests", folder)
	}
	return functions
}

func file(t *testing.T, name string) string {
	t.Helper()
	return testkit.ReadFile(t, filepath.Join(root, name))
}
