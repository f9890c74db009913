package inspect

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestATableIsCutUnlessItIsWide(t *testing.T) {
	for format, want := range map[Format]int{Table: narrowWidth, Wide: 122} {
		var out bytes.Buffer
		err := format.WriteTable(&out, [][]any{{strings.Repeat("é", 119), "é"}})
		if got := len([]rune(strings.TrimSuffix(out.String(), "\n"))); err != nil || got != want {
			t.Errorf("%s: %d columns, want %d (%v)", format, got, want, err)
		}
	}
}

// hostile is a text that breaks the line, writes to the clipboard of a terminal, and reorders what follows.
const hostile = "denied by:\n\x1b]52;c;cm0=\x07\r\nNothing is pending: it rolls at the next change.\u202e"

// hostileReport is an explanation with that text in every field.
func hostileReport() *Report {
	r := &Report{
		Cluster: "demo", Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web"}, now: historyNow, Problems: []string{hostile},
	}
	r.note("It was last rolled for secret/db: failed (patch-denied): %s", hostile)
	r.noteLines("It has been held: "+hostile, "That ends soon.")
	r.Sources = []explanation{{Source: "secret/db", Action: "roll", Sentence: hostile}}
	return r
}

func TestTextsOfOthersNeitherBreakALineNorControlTheTerminal(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write func(out io.Writer) error
		lines int
	}{
		{"an explanation", func(out io.Writer) error { return hostileReport().Write(out, Wide) }, 11},
		{"an explanation in little space", func(out io.Writer) error { return hostileReport().Write(out, Table) }, 11},
		{"a line of the history", func(out io.Writer) error {
			return (columns{}).writeEvent(out, storedOf(t, outcomeOf("web", events.VerbFailed, "patch-denied", hostile, historyNow)), "")
		}, 1},
		{"a narrow line of the history", func(out io.Writer) error {
			return (columns{narrow: true}).writeEvent(out, storedOf(t, outcomeOf("web", events.VerbFailed, "patch-denied", hostile, historyNow)), "")
		}, 1},
		{"a comparison", func(out io.Writer) error {
			return writeCompared(out, []comparedRow{{by: both, source: "secret/db", why: hostile}})
		}, 4},
		{"the clusters", func(out io.Writer) error {
			return writeMembers(out, Wide, []bus.Member{{Cluster: "demo", UIDs: []string{hostile}}})
		}, 2},
		{"the dead letters", func(out io.Writer) error {
			return writeLetters(out, Wide, []events.DeadLetter{{Error: hostile}})
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			testkit.Must(t, tt.write(&out))
			if got := strings.Count(out.String(), "\n"); got != tt.lines {
				t.Errorf("%d lines, want %d:\n%q", got, tt.lines, &out)
			}
			bad := func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }
			if strings.ContainsFunc(out.String(), bad) {
				t.Errorf("it has characters that cannot be printed:\n%q", &out)
			}
		})
	}
}
