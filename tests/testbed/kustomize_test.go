package testbed

import (
	"os"
	"strings"
	"testing"
)

func TestKustomize(t *testing.T) {
	if testing.Short() {
		t.Skip("kubectl may have to be built")
	}
	out, err := Kustomize(t.Context(), os.Stderr, "testdata/kustomization")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "name: red-settings") {
		t.Errorf("unexpected manifests:\n%s", out)
	}
	if _, err := Kustomize(t.Context(), os.Stderr, t.TempDir()); err == nil {
		t.Error("no error for a folder without a kustomization")
	}
}
