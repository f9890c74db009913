package release

import (
	"debug/buildinfo"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/releases"
)

// TestOnlyTheCommitAndTheVersionDecideABinary has the Makefile make a release of a repository of two programs, in two clones of one commit: with
// other tags, an ignored file, and every variable and setting of the go tool's that changes a binary.
func TestOnlyTheCommitAndTheVersionDecideABinary(t *testing.T) {
	first := smallRepository(t)
	second := filepath.Join(t.TempDir(), "second")
	run(t, first, nil, "git", "clone", "-q", ".", second)
	run(t, second, nil, "git", "tag", "v9.9.9")
	run(t, second, nil, "git", "tag", "v0.0.9", "HEAD~1")
	settings := filepath.Join(t.TempDir(), "env")
	work := filepath.Join(t.TempDir(), "go.work")
	for path, content := range map[string]string{
		settings: "GOFLAGS=-buildvcs=false\nGOEXPERIMENT=jsonv2\n", work: "go 1.26\n\nuse " + second + "\n",
		filepath.Join(second, "cmd/watcher/zz_ignored.go"): "package main\n\nfunc init() { println(`ignored`) }\n",
	} {
		testkit.WriteFile(t, path, content)
	}

	want := binaries(t, first, nil)
	got := binaries(t, second, []string{"GOENV=" + settings, "GOWORK=" + work, "GOFLAGS=-tags=other", "GOAMD64=v3", "GOARM64=v9.0", "GOFIPS140=latest"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("binaries (-first +second):\n%s", diff)
	}
	if len(want) != 3 {
		t.Errorf("got the binaries %v, want one program for two architectures and the plugin for one", want)
	}
}

// smallRepository returns a repository of two commits with the Makefile and programs that take a moment to build.
func smallRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, nil, "git", "init", "-q")
	const program = "package main\n\nvar version string\n\nfunc main() { println(version) }\n"
	for _, files := range []map[string]string{
		{"go.mod": "module example.com/small\n\ngo 1.26\n", ".gitignore": "/bin/\n/dist/\nzz_*\n"},
		{
			"Makefile": testkit.ReadFile(t, filepath.Join(releases.Root, "Makefile")), "LICENSE": "", "cmd/watcher/main.go": program, "cmd/keyturn/main.go": program,
			// In place of the tool that packs the programs.
			"tests/tools/image/go.mod": "module example.com/image\n", "tests/tools/image/main.go": "package main\n\nfunc main() {}\n",
		},
	} {
		for path, content := range files {
			testkit.WriteFile(t, filepath.Join(dir, path), content)
		}
		run(t, dir, nil, "git", "add", ".")
		run(t, dir, nil, "git", "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "Test")
	}
	return dir
}

// binaries returns what a release has of each binary: its checksum and its build information.
func binaries(t *testing.T, dir string, env []string) map[string]string {
	t.Helper()
	run(t, dir, env, "make", "release", "VERSION=v0.1.0", "PROGRAMS=./cmd/watcher", "PLATFORMS=linux_amd64",
		"RELEASE=mkdir -p dist; :") // In place of the tool.
	commit := strings.TrimSpace(run(t, dir, nil, "git", "rev-parse", "HEAD"))
	built := filepath.Join(dir, "bin", "release")
	all := map[string]string{}
	for _, folder := range []string{"linux_amd64", "linux_arm64", "plugin"} {
		if err := filepath.WalkDir(filepath.Join(built, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			info, err := buildinfo.ReadFile(path)
			if err != nil {
				return err
			}
			if info.Main.Version != "v0.1.0" || !strings.Contains(info.String(), "vcs.revision="+commit) {
				t.Errorf("%s: is not of v0.1.0 and %s:\n%s", path, commit, info)
			}
			name, err := filepath.Rel(built, path)
			all[name] = digestOf(content) + "\n" + info.String()
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// run runs a program in a folder, with no variables of this test run's builds but those that are given, and returns its output.
func run(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=", "MAKEFLAGS="), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
