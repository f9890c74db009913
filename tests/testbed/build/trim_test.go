package build

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

func TestATrimmedFileReplacesAReadOnlyOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pkg", "register.go")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("package all"), 0o444)); err != nil {
		t.Fatal(err)
	}
	if err := overwrite(dir, fstest.MapFS{"pkg/register.go": {Data: []byte("package few")}}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "package few" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestATrimmedFileThatTheModuleDoesNotHaveIsAnError(t *testing.T) {
	dir := t.TempDir()
	err := overwrite(dir, fstest.MapFS{"moved.go": {Data: []byte("package few")}})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
}
