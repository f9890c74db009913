package testkit

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update is the flag -update. `make generate` passes it to every package that compares with golden files.
var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Golden compares content with a golden file and reports a difference. With -update, it writes the file instead.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		writeFile(t, path, got, 0o644)
		return
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v; `make generate` or the flag -update writes it", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs from what the code generates; if this is intended, run `make generate` or pass -update (-file +code):\n%s",
			path, cmp.Diff(string(want), string(got)))
	}
}
