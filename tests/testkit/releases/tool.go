// Package releases runs the tool behind `make release` in tests.
package releases

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Root is the root of the repository, seen from a test in a subfolder of tests.
const Root = "../.."

// Tool is the tool with a key to sign with.
type Tool struct {
	*testing.T
	// Version is the version of the checkout.
	Version string
	// Keys is the folder of the key.
	Keys string
	// root is a folder with the parts of this checkout that a release needs, filled in, and the public key.
	root, binary string
}

// New builds the tool, and creates a key.
func New(t *testing.T) Tool {
	t.Helper()
	r := Tool{T: t, Version: testkit.Version(t, Root), Keys: t.TempDir(), binary: filepath.Join(t.TempDir(), "release")}
	if out, err := r.Command("go", "build", "-C", "../tools/release", "-o", r.binary, "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.MakeKey(r.Keys)
	r.root = t.TempDir()
	testkit.Must(t, os.CopyFS(filepath.Join(r.root, "deploy"), os.DirFS(filepath.Join(Root, "deploy"))))
	r.Prepare(r.root)
	testkit.WriteFile(t, filepath.Join(r.root, "LICENSE"), r.Read(Root, "LICENSE"))
	return r
}

// Prepare writes what a release needs beside deploy into a folder: the changelog, the public key, and the files that say whose the project is.
func (r Tool) Prepare(dir string) {
	r.Helper()
	files := map[string]string{"CHANGELOG.md": string(r.Read(Root, "CHANGELOG.md")), "cosign.pub": string(r.Read(r.Keys, "cosign.pub"))}
	for _, name := range []string{"MAINTAINERS.md", ".github/CODEOWNERS", "README.md"} {
		files[name] = strings.NewReplacer("@OWNER", "@somebody", "@REPOSITORY", "keyturn/keyturn").Replace(string(r.Read(Root, name)))
	}
	for name, content := range files {
		testkit.WriteFile(r.T, filepath.Join(dir, name), content)
	}
}

// In returns the tool for a subtest.
func (r Tool) In(t *testing.T) Tool {
	r.T = t
	return r
}

// MakeKey creates a key pair in a folder.
func (r Tool) MakeKey(dir string) {
	r.Helper()
	if out, err := r.TryMakeKey(dir); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
}

// TryMakeKey creates a key pair in a folder, and returns the error, if any.
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

// Publish publishes a release, and returns the names that did not exist before, in the order in which they appeared, and
// their digests.
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

// Try runs the tool on the files of this checkout, unless the arguments name others.
func (r Tool) Try(args ...string) (string, error) {
	return r.Command(r.binary, append([]string{"-root", r.root, "-commit", strings.Repeat("0", 40), "-time", "1763663580"}, args...)...)
}

// Command runs a program without the flags of this run, such as -race, and without the user's credentials in its environment.
func (r Tool) Command(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), program, args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=", "COSIGN_PASSWORD=opens", "DOCKER_CONFIG="+r.Keys)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Read returns a file.
func (r Tool) Read(elem ...string) []byte {
	r.Helper()
	return []byte(testkit.ReadFile(r.T, filepath.Join(elem...)))
}
