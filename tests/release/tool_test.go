package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testbed"
)

const root = "../.."

// tool is the program that makes releases, and the key that it signs with.
type tool struct {
	*testing.T
	binary, keys string
	// version is that of the checkout.
	version string
}

func newTool(t *testing.T) tool {
	t.Helper()
	if err := testbed.Inputs("../../deploy", "../../CHANGELOG.md", "../../LICENSE", "../tools/image", "../tools/release"); err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version string }
	content, err := os.ReadFile("../../deploy/chart/Chart.yaml")
	if err == nil {
		err = yaml.Unmarshal(content, &chart)
	}
	if err != nil {
		t.Fatal(err)
	}
	made := tool{t, filepath.Join(t.TempDir(), "release"), t.TempDir(), "v" + chart.Version}
	if out, err := made.command("go", "build", "-C", "../tools/release", "-o", made.binary, "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := made.command(made.binary, "key", "-out", made.keys); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return made
}

// in returns the tool for a subtest.
func (r tool) in(sub *testing.T) tool {
	r.T = sub
	return r
}

// release makes a release for a registry, and returns its folder.
func (r tool) release(registry string, args ...string) string {
	r.Helper()
	dist := filepath.Join(r.TempDir(), "dist")
	args = append([]string{"-version", r.version, "-registry", registry, "-out", dist, "-key", filepath.Join(r.keys, "cosign.key")}, args...)
	if out, err := r.run(args...); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	return dist
}

// run runs the tool on this checkout.
func (r tool) run(args ...string) (string, error) {
	return r.command(r.binary, append([]string{"-root", root, "-commit", strings.Repeat("0", 40), "-time", "1763663580"}, args...)...)
}

// command runs a program in whose environment are no flags of this run, such as -race, and no credentials of the user.
func (r tool) command(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), program, args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=", "COSIGN_PASSWORD=opens", "DOCKER_CONFIG="+r.keys)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// read returns a file.
func (r tool) read(elem ...string) []byte {
	r.Helper()
	content, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		r.Fatal(err)
	}
	return content
}
