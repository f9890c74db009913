package main

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestAShortRunLosesNothing is a whole run, with a minute of faults of every kind on few workloads.
func TestAShortRunLosesNothing(t *testing.T) {
	testkit.Nightly(t)
	binaries, err := programs.Build(t.Context(), build.Race())
	testkit.Must(t, err)
	s, err := parse([]string{"-duration", "1m", "-workloads", "40"}, 1)
	testkit.Must(t, err)
	s.root, s.binaries = "../..", binaries
	report, err := runSoak(t.Context(), s, t.Output())
	testkit.Must(t, err)
	var text strings.Builder
	report.print(&text)
	if report.failed() {
		t.Errorf("something is wrong:\n%s", text.String())
	}
	t.Log(text.String())
	if rolls := report.evidence.journal.rolls(report.evidence.from); rolls == 0 || len(report.faults) == 0 {
		t.Errorf("%d rolls and %d faults, so nothing was tested", rolls, len(report.faults))
	}
}
