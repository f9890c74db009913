package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASmallRunMeasuresEverything(t *testing.T) {
	testkit.Nightly(t)
	page := filepath.Join(t.TempDir(), "scale.md")
	args := []string{"-clusters", "2,4", "-sources", "20", "-sustain", "200ms", "-changed", "0.5", "-write", page}
	testkit.Must(t, run(t.Context(), "../../deploy/nats", args))
	written, err := os.ReadFile(page)
	testkit.Must(t, err)
	for _, want := range []string{`2 \| 40 \|%s 10 of 1`, `4 \| 80 \|%s 20 of 2`} {
		// None of the cells between is empty or zero.
		row := regexp.MustCompile(`(?m)^\| ` + fmt.Sprintf(want, `( ([^|0 ]|0[^|])[^|]* \|){9} [^|]+ for`) + ` \| \d+ \|$`)
		if !row.Match(written) {
			t.Errorf("the page has no row like %s:\n%s", row, written)
		}
	}
}
