package events

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with: go test ./internal/events -update", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; if that is meant, write it with: go test ./internal/events -update\n%s", path, cmp.Diff(string(want), string(got)))
	}
}
