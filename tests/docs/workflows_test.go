package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// workflow is what a test can hold of a workflow of the code host.
type workflow struct {
	Permissions *map[string]string
	Jobs        map[string]struct {
		TimeoutMinutes int `json:"timeout-minutes"`
		Steps          []step
	}
}

type step struct {
	Uses, Run string
	With      map[string]any
}

// releaseSteps returns what the workflow of a release does: the last two steps make it and publish it.
func releaseSteps(t *testing.T) []step {
	t.Helper()
	var w workflow
	testkit.Must(t, yaml.Unmarshal([]byte(file(t, ".github/workflows/release.yaml")), &w))
	return w.Jobs["release"].Steps
}

// TestWorkflowsCallWhatIsThere holds .github/workflows to the Makefile, each action to one commit, and the token to what it needs.
func TestWorkflowsCallWhatIsThere(t *testing.T) {
	targets := map[string]bool{}
	for _, target := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(makefile(t), -1) {
		targets[target[1]] = true
	}
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	testkit.Must(t, err)
	called := map[string]bool{}
	for _, file := range files {
		content := testkit.ReadFile(t, file)
		var w workflow
		if err := yaml.Unmarshal([]byte(content), &w); err != nil || len(w.Jobs) == 0 || w.Permissions == nil {
			t.Errorf("%s: %v, want jobs and permissions in\n%s", file, err, content)
		}
		for name, job := range w.Jobs {
			if job.TimeoutMinutes == 0 {
				t.Errorf("%s: the job %s has no timeout", file, name)
			}
			for _, step := range job.Steps {
				if pinned := regexp.MustCompile(`@[0-9a-f]{40}$`); step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: %s is not pinned to a commit", file, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/setup-go@") && (step.With["go-version-file"] != ".go-version" || step.With["go-version"] != nil) {
					t.Errorf("%s: the job %s takes another Go than that of .go-version", file, name)
				}
				for _, call := range regexp.MustCompile(`(?m)^\s*make ([a-z0-9-]+)`).FindAllStringSubmatch(step.Run, -1) {
					if called[call[1]] = true; !targets[call[1]] {
						t.Errorf("%s: there is no make %s", file, call[1])
					}
				}
			}
		}
	}
	for _, target := range []string{"test-all", "test-nightly", "release", "publish"} {
		if !called[target] {
			t.Errorf("no workflow calls make %s", target)
		}
	}
}

// TestTheOldestKubernetesIsTestedByTestsThatExist holds the names in OLDEST of the Makefile to tests: go test passes where a name is of none.
func TestTheOldestKubernetesIsTestedByTestsThatExist(t *testing.T) {
	var functions []string
	packages := regexp.MustCompile(`(?m)GO_TEST\) '([^']+)'.*-run '\$\(OLDEST\)'`).FindStringSubmatch(makefile(t))
	if packages == nil {
		t.Fatal("no command of the Makefile runs OLDEST")
	}
	for folder := range strings.FieldsSeq(packages[1]) {
		functions = append(functions, functionsOf(t, folder)...)
	}
	found := 0
	for _, line := range regexp.MustCompile(`(?m)^OLDEST := (?:\$\(OLDEST\)\|)?(\S+)$`).FindAllStringSubmatch(makefile(t), -1) {
		for name := range strings.SplitSeq(line[1], "|") {
			found++
			if !slices.ContainsFunc(functions, regexp.MustCompile(name).MatchString) {
				t.Errorf("no test of %s is %s", packages[1], name)
			}
		}
	}
	if found < 5 {
		t.Errorf("got %d names in OLDEST, want all", found)
	}
}

// TestTheCommitNamesOneVersionOfGo holds .go-version to one: a release that is made again has the same bytes only with the same Go.
func TestTheCommitNamesOneVersionOfGo(t *testing.T) {
	if content := file(t, ".go-version"); !regexp.MustCompile(`^1\.\d+\.\d+\n$`).MatchString(content) {
		t.Errorf("got %q, want a version like 1.26.0", content)
	}
}

// TestUpdatesAreProposedForWhateverIsBuilt holds .github/dependabot.yml to the modules, but for those of the oldest versions.
func TestUpdatesAreProposedForWhateverIsBuilt(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `json:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	testkit.Must(t, yaml.Unmarshal([]byte(file(t, ".github/dependabot.yml")), &config))
	got := map[string][]string{}
	for _, update := range config.Updates {
		folders := update.Directories
		if update.Directory != "" {
			folders = append(folders, update.Directory)
		}
		got[update.Ecosystem] = append(got[update.Ecosystem], folders...)
	}
	modules, err := filepath.Glob(filepath.Join(root, "tests/tools/*/go.mod"))
	testkit.Must(t, err)
	want := map[string][]string{"gomod": {"/"}, "github-actions": {"/"}}
	for _, module := range modules {
		if tool := filepath.Base(filepath.Dir(module)); !strings.HasSuffix(tool, "-oldest") {
			want["gomod"] = append(want["gomod"], "/tests/tools/"+tool)
		}
	}
	slices.Sort(got["gomod"])
	slices.Sort(want["gomod"])
	testkit.WantEqual(t, "folders", want, got)
}

func makefile(t *testing.T) string {
	t.Helper()
	return file(t, "Makefile")
}

// TestTheSigningKeyStaysNowhere runs the step of the workflow that makes the release, with a program in place of make that has the key or has not.
func TestTheSigningKeyStaysNowhere(t *testing.T) {
	steps := releaseSteps(t)
	for _, test := range []struct{ name, program string }{
		{"after a release", "#!/bin/sh\nfor key; do :; done\ncat \"${key#SIGNING_KEY=}\"\n"},
		{"after none could be made", "#!/bin/sh\nprintf secret; exit 2\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bin, temporary := t.TempDir(), t.TempDir()
			testkit.WriteProgram(t, filepath.Join(bin, "make"), test.program)
			cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", steps[len(steps)-2].Run)
			cmd.Env = []string{
				"PATH=" + bin + ":" + os.Getenv("PATH"), "RUNNER_TEMP=" + temporary, "COSIGN_KEY=secret",
				"GITHUB_REF_NAME=v0.1.0", "GITHUB_REPOSITORY_OWNER=keyturn",
			}
			if out, err := cmd.CombinedOutput(); string(out) != "secret" {
				t.Errorf("got %v and %q, want a release that is signed", err, out)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("got %v and the files %v, want none", err, left)
			}
		})
	}
}

// TestOnlyACommitOfMainIsReleased runs what the workflow does before it makes a release, in a clone at a commit of main and at another one.
func TestOnlyACommitOfMainIsReleased(t *testing.T) {
	steps := releaseSteps(t)
	if steps[0].With["fetch-depth"] != 0.0 {
		t.Errorf("got the depth %v, want 0: a clone of the tag alone does not know main", steps[0].With["fetch-depth"])
	}
	check := slices.IndexFunc(steps, func(s step) bool { return strings.Contains(s.Run, "origin/main") })
	if check < 0 || check >= len(steps)-2 {
		t.Fatalf("step %d of %d compares with main, want one before the release", check, len(steps))
	}
	upstream, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	run := func(dir, program string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GITHUB_REF_NAME=v0.1.0")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	git := func(t *testing.T, dir string, args ...string) {
		t.Helper()
		if out, err := run(dir, "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git(t, upstream, "init", "-q", "-b", "main")
	git(t, upstream, "commit", "-q", "--allow-empty", "-m", "First")
	git(t, upstream, "commit", "-q", "--allow-empty", "-m", "Second")
	git(t, upstream, "clone", "-q", ".", clone)
	for _, test := range []struct{ name, at, want string }{
		{"the newest commit of main", "origin/main", ""},
		{"an older one", "origin/main~1", ""},
		{"a commit of another branch", "other", "v0.1.0 is of a commit that is not on main\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.at == "other" {
				git(t, clone, "checkout", "-q", "-b", "other", "origin/main")
				git(t, clone, "commit", "-q", "--allow-empty", "-m", "Unseen")
			} else {
				git(t, clone, "checkout", "-q", "--detach", test.at)
			}
			if out, err := run(clone, "bash", "-e", "-c", steps[check].Run); out != test.want || (err == nil) != (test.want == "") {
				t.Errorf("got %v and %q, want %q", err, out, test.want)
			}
		})
	}
}

// TestAPreReleaseIsNotTheLatest runs what the workflow does once the files of a release are there, with programs that only say how they were called.
func TestAPreReleaseIsNotTheLatest(t *testing.T) {
	steps := releaseSteps(t)
	for _, test := range []struct{ name, tag, want string }{
		{"a release", "v0.2.0", "--notes-file dist/release-notes.md dist/install.yaml"},
		{"a pre-release", "v0.2.0-rc.1", "--notes-file dist/release-notes.md --prerelease --latest=false dist/install.yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for path, content := range map[string]string{
				"dist/install.yaml": "", "bin/make": "#!/bin/sh\n", "bin/docker": "#!/bin/sh\ncat > /dev/null\n", "bin/gh": "#!/bin/sh\necho gh \"$@\"\n",
			} {
				testkit.WriteProgram(t, filepath.Join(dir, path), content)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", steps[len(steps)-1].Run)
			cmd.Dir = dir
			cmd.Env = []string{
				"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "GITHUB_REF_NAME=" + test.tag, "GITHUB_REPOSITORY=keyturn/keyturn",
			}
			out, err := cmd.CombinedOutput()
			want := "gh release create " + test.tag + " --repo keyturn/keyturn --verify-tag " + test.want + "\n"
			if err != nil || string(out) != want {
				t.Errorf("got %v and %q, want %q", err, out, want)
			}
		})
	}
}
