package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachDemoEndsAsExpected(t *testing.T) {
	testkit.Nightly(t)
	// The demos run from the root of the repository.
	t.Chdir("../..")
	page := filepath.Join(t.TempDir(), "bin", "rotations.html")
	for _, test := range []struct {
		name string
		show show
	}{
		{"changes of Secrets and ConfigMaps", changesDemo()},
		{"rotations in a secret store", secretsDemo(page)},
		{"the trace of a change", traceDemo()},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := play(t.Context(), &report{out: t.Output(), start: time.Now()}, test.show); err != nil {
				t.Error("the output above says what failed")
			}
		})
	}
	drawn, err := os.ReadFile(page)
	testkit.Must(t, err)
	for _, want := range []string{"/secret/shop/db</bdi> rotated", "externalsecret/db", "deployment/web", "All ready<"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("the page of the rotations does not have %q", want)
		}
	}
}
