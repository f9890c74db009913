package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// seed matches the seed of a user.
var seed = regexp.MustCompile(`\bSU[A-Z2-7]{56}\b`)

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stores string
		clusters     []string
		want         string
	}{
		{"no cluster", "", nil, "render.sh FOLDER CLUSTER..."},
		{"a name that is no label", "", []string{"eu", "Prod"}, `cluster "Prod": want lower-case letters`},
		{"a name that means something else", "", []string{"fleet"}, `cluster "fleet": the name is taken`},
		{"a leaf node whose folder is the hub's", "", []string{"hub:leaf"}, `cluster "hub:leaf": the name is taken`},
		{"a name of a file of the hub", "", []string{"eu", "server"}, `cluster "server": the name is taken`},
		{"a name of a file of another cluster", "", []string{"eu", "eu-users"}, `cluster "eu-users": the name is taken: hub/eu-users.conf`},
		{"stores that no cluster watches", "core", []string{"eu"}, `STORES: "core" is not one of eu`},
		{"a size that is no number", "", []string{"eu"}, "MEMBER_MIB, FLEET_MIB: want whole numbers of MiB"},
		{"stores beyond a leaf node", "eu", []string{"eu:leaf"}, `STORES: "eu" has a NATS of its own`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			script := exec.Command("sh", append([]string{filepath.Join(deployed, "render.sh"), dir}, tt.clusters...)...)
			script.Env = append(os.Environ(), "STORES="+tt.stores)
			if strings.Contains(tt.want, "MEMBER_MIB") {
				script.Env = append(script.Env, "MEMBER_MIB=8G")
			}
			out, err := script.CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("got %v, %s, want %s", err, out, tt.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("it has written something")
			}
		})
	}
}

func TestRenderKeepsItsSettings(t *testing.T) {
	t.Parallel()
	h := &hub{T: t, NATSHub: &testbed.NATSHub{Dir: filepath.Join(t.TempDir(), "out")}}
	h.must(h.run("STORES=us", "MEMBER_MIB=300", "FLEET_MIB=200")("eu:leaf", "us"))
	before := h.files()
	h.must(h.run()("eu:leaf", "us"))
	if diff := cmp.Diff(before, h.files()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}

	if out, err := h.run()("eu", "us"); err == nil || !strings.Contains(out, `cluster "eu": it has a NATS of its own: want "eu:leaf"`) {
		t.Errorf("without :leaf: got %v, %s", err, out)
	}
	if diff := cmp.Diff(before, h.files()); diff != "" {
		t.Errorf("what was refused is written (-before +after):\n%s", diff)
	}

	h.must(h.run("STORES=")("eu:leaf", "us"))
	if files := h.files(); strings.Contains(files["hub/us-accounts.conf"]+files["hub/us.conf"]+files["eu/accounts.conf"], "$JS.S.>") {
		t.Error("with STORES=\"\" the stores are shared still")
	}
}

// run returns a run of render.sh in h.Dir with these of its variables.
func (h *hub) run(variables ...string) func(clusters ...string) (string, error) {
	h.Helper()
	nk, err := build.Binary(h.Context(), os.Stderr, build.NATSKeys)
	testkit.Must(h, err)
	return func(clusters ...string) (string, error) {
		script := exec.Command("sh", append([]string{filepath.Join(deployed, "render.sh"), h.Dir}, clusters...)...)
		script.Env = append([]string{"PATH=" + os.Getenv("PATH"), "NK=" + nk}, variables...)
		out, err := script.CombinedOutput()
		return string(out), err
	}
}

func (h *hub) must(out string, err error) {
	h.Helper()
	if err != nil {
		h.Fatalf("%v: %s", err, out)
	}
}

// A cluster with a leaf node has no users on the hub, so no file of the hub is named for them.
func TestANameLikeAFileThatNoClusterHasIsAccepted(t *testing.T) {
	t.Parallel()
	h := render(t, "eu:leaf", "eu-users", "us-accounts:leaf")
	for _, path := range []string{"hub/eu-users.conf", "hub/eu-users-users.conf", "us-accounts/server.conf"} {
		if h.files()[path] == "" {
			t.Errorf("%s is missing", path)
		}
	}
}

func TestRenderKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	h := render(t, "eu:leaf", "us")
	before := h.files()
	h.render("", "eu:leaf", "us", "ap")
	after := h.files()
	for path, content := range before {
		switch path {
		case "hub/clusters.conf", "hub/fleet.conf", "streams/fleet.json":
			if content == after[path] {
				t.Errorf("%s knows nothing of the new cluster", path)
			}
		default:
			if diff := cmp.Diff(content, after[path]); diff != "" {
				t.Errorf("%s (-before +after):\n%s", path, diff)
			}
		}
	}
	for path, content := range after {
		if strings.ContainsAny(content, "@") || strings.Contains(content, "CLUSTER") {
			t.Errorf("%s has something that was not filled in:\n%s", path, content)
		}
		if secret := strings.HasSuffix(path, ".nk") || path == "eu/leaf-key.conf"; seed.MatchString(content) != secret {
			t.Errorf("%s: whether it holds a seed is %t, want %t", path, !secret, secret)
		}
	}
}

// files returns the files that render.sh has written.
func (h *hub) files() map[string]string {
	h.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(h.Dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(h.Dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[name] = string(content)
		return err
	})
	testkit.Must(h, err)
	return files
}
