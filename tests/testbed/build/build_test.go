package build

import (
	"io"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestBinaryPrefersAssets(t *testing.T) {
	assets := t.TempDir()
	want := filepath.Join(assets, Etcd)
	t.Setenv(versionsVariable, "")
	testkit.WriteProgram(t, want, "")
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
	testkit.Must(t, err)
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
	content := testkit.ReadFile(t, filepath.Join(dir, "go.mod"))
	versions := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+) (v\S+)( // indirect)?$`).FindAllStringSubmatch(content, -1) {
		versions[line[1]] = line[2]
	}
	return versions
}
