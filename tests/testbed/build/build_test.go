package build

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestBuildProgram(t *testing.T) {
	path, err := Program(t.Context(), "./tests/testbed/cmd/build", false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "no-such-server").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `unknown server "no-such-server"`) {
		t.Errorf("%v, %s", err, out)
	}
	if _, err := Program(t.Context(), "./no/such/program", false); err == nil {
		t.Error("no error for a package that does not exist")
	}
}

func TestAllBuildsProgramsBesideServers(t *testing.T) {
	compiled, err := goCommand(t.Context(), ".", []string{"env", "GOCACHE"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", compiled)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	// The first is no server and the second no package: neither hides the other.
	err = All(t.Context(), io.Discard, "no-such-server", "./no/such/program", "./tests/testbed/cmd/build")
	for _, want := range []string{`unknown server "no-such-server"`, "build ./no/such/program"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err := All(t.Context(), io.Discard, "./tests/testbed/cmd/build"); err != nil {
		t.Fatal(err)
	}
	root, err := moduleDir(t.Context(), ".", modulePath)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := programsDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if path := filepath.Join(dir, "build"); !isFile(path) {
		t.Errorf("%s was not built", path)
	}
}

func TestBinaryPrefersAssets(t *testing.T) {
	assets := t.TempDir()
	want := filepath.Join(assets, Etcd)
	t.Setenv(versionsVariable, "")
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(assetsVariable, assets)
	if got, err := Binary(t.Context(), io.Discard, Etcd); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := Binary(t.Context(), io.Discard, Node); err != nil || filepath.Dir(got) == assets {
		t.Errorf("%s, %v, want one that was built", got, err)
	}
}

// The version is in the name of the cache folder: with a wrong version, a binary would be mistaken for another one.
func TestServersAreTheVersionsOfTheirTools(t *testing.T) {
	for _, name := range serverNames() {
		t.Run(name, func(t *testing.T) { hasTheVersionOfItsTools(t, name) })
	}
	for _, name := range []string{APIServer, Helm, NATS, ExternalSecrets} {
		t.Run("the oldest "+name, func(t *testing.T) {
			t.Setenv(versionsVariable, oldest)
			hasTheVersionOfItsTools(t, name)
		})
	}
}

func hasTheVersionOfItsTools(t *testing.T, name string) {
	t.Helper()
	s, err := findServer(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := required(t, filepath.Join("..", "..", "tools", s.tools))[s.module]; got != s.version {
		t.Errorf("%s, want %s", got, s.version)
	}
}

// Equal packages are compiled once for the programs and for the control plane, which are most of what make test compiles.
func TestTheControlPlaneHasTheVersionsOfThePrograms(t *testing.T) {
	programs, shared := required(t, filepath.Join("..", "..", "..")), 0
	for module, version := range required(t, filepath.Join("..", "..", "tools", controlPlane)) {
		want, both := programs[module]
		if !both {
			continue
		}
		if shared++; version != want {
			t.Errorf("tests/tools/%s has %s %s, and /go.mod %s", controlPlane, module, version, want)
		}
	}
	if shared < 50 {
		t.Errorf("they share %d modules, want most", shared)
	}
}

// required returns the versions in a go.mod, by module.
func required(t *testing.T, dir string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+) (v\S+)( // indirect)?$`).FindAllStringSubmatch(string(content), -1) {
		versions[line[1]] = line[2]
	}
	return versions
}

func TestBuildCommitSaysThatTheCommitIsNotThere(t *testing.T) {
	if _, err := Commit(t.Context(), "no-such-revision", "./cmd/watcher"); !errors.Is(err, ErrNoCommit) {
		t.Errorf("got %v, want ErrNoCommit", err)
	}
}
