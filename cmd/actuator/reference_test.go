package main

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/internal/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString("# The flags of the actuator\n\nThis page is made from the code by `make generate`.\n\n")
	if err := process.Reference(&doc, "Commands", newCommand(0)); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "../../docs/flags-actuator.md", doc.Bytes())
}
