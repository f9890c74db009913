package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/internal/telemetry"
)

var update = flag.Bool("update", false, "write the files that are made from code")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	const path = "../../docs/flags-actuator.md"
	var doc bytes.Buffer
	doc.WriteString("# The flags of the actuator\n\nThis page is made from the code by `make generate`.\n\n")
	if err := telemetry.Reference(&doc, "Commands", newCommand()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, doc.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), doc.String()); diff != "" {
		t.Errorf("%s is not what the code says; make generate writes it (-file +code):\n%s", path, diff)
	}
}
