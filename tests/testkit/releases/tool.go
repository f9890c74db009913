// Package releases runs the tool behind `make release` in tests.
package releases

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Root is the root of the repository for a test in a folder of tests.
const Root = "../.."

// Tool is the tool, and a key that it signs with.
type Tool struct {
	*testing.T
	// Version is that of the checkout.
	Version string
	// Keys is the folder of the key.
	Keys string
	// root has what this checkout has for a release, and the public key.
	root, binary string
}

// New builds the tool, and makes a key.
func New(t *testing.T) Tool {
	t.Helper()
	if err := testbed.Inputs("../../deploy", "../../CHANGELOG.md", "../../LICENSE", "../tools/image", "../tools/release"); err != nil {
		t.Fatal(err)
	}
	r := Tool{T: t, Version: testkit.Version(t, Root), Keys: t.TempDir(), binary: filepath.Join(t.TempDir(), "release")}
	if out, err := r.Command("go", "build", "-C", "../tools/release", "-o", r.binary, "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.MakeKey(r.Keys)
	r.root = t.TempDir()
	if err := os.CopyFS(filepath.Join(r.root, "deploy"), os.DirFS(filepath.Join(Root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(Root, "CHANGELOG.md"), filepath.Join(Root, "LICENSE"), filepath.Join(r.Keys, "cosign.pub")} {
		if err := os.WriteFile(filepath.Join(r.root, filepath.Base(path)), r.Read(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// In returns the tool for a subtest.
func (r Tool) In(t *testing.T) Tool {
	r.T = t
	return r
}

// MakeKey makes a pair of keys in a folder.
func (r Tool) MakeKey(dir string) {
	r.Helper()
	if out, err := r.TryMakeKey(dir); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
}

// TryMakeKey makes a pair of keys in a folder.
func (r Tool) TryMakeKey(dir string) (string, error) { return r.Command(r.binary, "key", "-out", dir) }

// Make makes a release for a registry, without an image, and returns its folder.
func (r Tool) Make(registry string, args ...string) string {
	r.Helper()
	dist := filepath.Join(r.TempDir(), "dist")
	args = append([]string{"-version", r.Version, "-registry", registry, "-out", dist, "-key", filepath.Join(r.Keys, "cosign.key")}, args...)
	if out, err := r.Try(args...); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	return dist
}

// Publish publishes a release, and returns the names that were not there yet, in the order in which they appeared, and the digest of each.
func (r Tool) Publish(dist string) (names []string, digests map[string]string) {
	r.Helper()
	out, err := r.TryPublish(dist)
	if err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	digests = map[string]string{}
	for line := range strings.Lines(out) {
		if pushed := strings.Fields(line); len(pushed) == 3 && pushed[0] == "pushed" {
			names = append(names, pushed[1])
			digests[pushed[1]] = pushed[2]
		}
	}
	return names, digests
}

// TryPublish publishes a release.
func (r Tool) TryPublish(dist string) (string, error) {
	return r.Command(r.binary, "publish", "-dist", dist)
}

// Try runs the tool on what this checkout has, unless the arguments name another.
func (r Tool) Try(args ...string) (string, error) {
	return r.Command(r.binary, append([]string{"-root", r.root, "-commit", strings.Repeat("0", 40), "-time", "1763663580"}, args...)...)
}

// Command runs a program in whose environment are no flags of this run, such as -race, and no credentials of the user.
func (r Tool) Command(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), program, args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=", "COSIGN_PASSWORD=opens", "DOCKER_CONFIG="+r.Keys)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Read returns a file.
func (r Tool) Read(elem ...string) []byte {
	r.Helper()
	content, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		r.Fatal(err)
	}
	return content
}
