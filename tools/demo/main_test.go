package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestEachDemoEndsAsExpected(t *testing.T) {
	testkit.Nightly(t)
	// The demos run from the root of the repository.
	t.Chdir("../..")
	page := filepath.Join(t.TempDir(), "bin", "rotations.html")
	for _, test := range []struct {
		name  string
		show  show
		check func(*testing.T)
	}{
		{"changes of Secrets and ConfigMaps", changesDemo(), nil},
		{"rotations in a secret store", secretsDemo(page), func(t *testing.T) { checkPage(t, page) }},
		{"the trace of a change", traceDemo(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := play(t.Context(), &report{out: t.Output(), start: time.Now()}, test.show); err != nil {
				t.Error("the output above says what failed")
			}
			if test.check != nil {
				test.check(t)
			}
		})
	}
}

// checkPage checks that the page has the rotations of the demo.
func checkPage(t *testing.T, path string) {
	t.Helper()
	drawn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/secret/shop/db</bdi> rotated", "externalsecret/db", "deployment/web", "All ready<"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("the page of the rotations does not have %q", want)
		}
	}
}
