package main

import (
	"bytes"
	"testing"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString("# The flags of the actuator\n\nThis page is made from the code by `make generate`.\n\n")
	if err := commands.Reference(&doc, "Commands", newCommand(0)); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "../../docs/flags-actuator.md", doc.Bytes())
}
