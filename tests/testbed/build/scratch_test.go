package build

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWhatABuildLeavesIsRemoved(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	packages := filepath.Join(t.TempDir(), "go-build")
	t.Setenv("GOCACHE", packages)
	compiled := filepath.Join(packages, "0a", "0a11-d")
	testkit.WriteFile(t, compiled, "package")
	killed, err := newScratch(t.Context())
	testkit.Must(t, err)
	killed.unlock() // as the kernel does
	s, err := newScratch(t.Context())
	testkit.Must(t, err)
	if content, err := os.ReadFile(filepath.Join(s.dir, "packages", "0a", "0a11-d")); err != nil || string(content) != "package" {
		t.Errorf("a compiled package in the scratch folder: %q, %v", content, err)
	}
	beside, err := newScratch(t.Context())
	testkit.Must(t, err)
	if _, err := os.Stat(s.dir); err != nil {
		t.Errorf("a build that goes on: %v", err)
	}
	s.remove()
	beside.remove()
	for _, dir := range []string{killed.dir, s.dir, beside.dir} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", dir, err)
		}
	}
	if content, err := os.ReadFile(compiled); err != nil || string(content) != "package" {
		t.Errorf("the compiled package: %q, %v", content, err)
	}
}

func TestKindsThatWereNotCopiedWhollyAreNotKept(t *testing.T) {
	module, dir := t.TempDir(), t.TempDir()
	s := server{kinds: func(_, to string) error {
		if err := os.MkdirAll(to, 0o750); err != nil {
			return err
		}
		return os.ErrPermission
	}}
	if _, err := s.saveKinds(t.Context(), module, dir); err == nil {
		t.Error("no error")
	}
	s.kinds = extractCRDs(".")
	testkit.WriteFile(t, filepath.Join(module, "crd.yaml"), "")
	kinds, err := s.saveKinds(t.Context(), module, dir)
	testkit.Must(t, err)
	if _, err := os.Stat(filepath.Join(kinds, "crd.yaml")); err != nil {
		t.Error(err)
	}
}
