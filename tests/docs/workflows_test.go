package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what a test can hold of a workflow of the code host.
type workflow struct {
	Permissions *map[string]string
	Jobs        map[string]struct {
		TimeoutMinutes int `json:"timeout-minutes"`
		Steps          []struct{ Uses, Run string }
	}
}

// TestWorkflowsCallWhatIsThere holds .github/workflows to the Makefile, each action to one commit, and the token to what it needs.
func TestWorkflowsCallWhatIsThere(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[target[1]] = true
	}
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(content, &w); err != nil || len(w.Jobs) == 0 || w.Permissions == nil {
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
				for _, call := range regexp.MustCompile(`(?m)^\s*make ([a-z-]+)`).FindAllStringSubmatch(step.Run, -1) {
					if called[call[1]] = true; !targets[call[1]] {
						t.Errorf("%s: there is no make %s", file, call[1])
					}
				}
			}
		}
	}
	for _, target := range []string{"test", "release", "publish"} {
		if !called[target] {
			t.Errorf("no workflow calls make %s", target)
		}
	}
}
