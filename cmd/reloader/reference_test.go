package main

import (
	"bytes"
	"testing"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString("# The flags of reloader\n\nThis page is made from the code by `make generate`.\n\n" +
		"The names and defaults are those of Stakater's Reloader 1.4, except for the flags that it does not have: `--cluster`,\n" +
		"`--fingerprint-key-file`, `--kubeconfig`, `--max-rolls-per-hour`, `--metrics-addr`, `--notify-config`, `--settle` and\n" +
		"`--state-dir`. See [one process](reloader.md#one-process).\n\n")
	if err := commands.Reference(&doc, "Commands", newCommand(0)); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "../../docs/flags-reloader.md", doc.Bytes())
}
