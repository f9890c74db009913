package testkit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// ReadFile returns the content of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// WriteFile writes a file, and makes the folder that it is in.
func WriteFile[T string | []byte](t testing.TB, path string, content T) {
	t.Helper()
	writeFile(t, path, []byte(content), 0o600)
}

// WriteProgram does the same for a script that can be run.
func WriteProgram(t testing.TB, path, script string) {
	t.Helper()
	writeFile(t, path, []byte(script), 0o700)
}

func writeFile(t testing.TB, path string, content []byte, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, mode)); err != nil {
		t.Fatal(err)
	}
}
