package timeline

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldenPage(t *testing.T) {
	h := newHistory(t, Options{TraceURL: "https://traces.example.com/trace/{traceID}"})
	h.night()
	var out bytes.Buffer
	if err := h.line.Write(&out); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "night.html")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("page (-want +got), which `make generate` writes:\n%s", diff)
	}
}
