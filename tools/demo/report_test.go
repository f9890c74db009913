package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// someTime is what durations are replaced by.
var someTime = regexp.MustCompile(`\d+\.\d+ s`)

func TestReportIsPlainLines(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out, start: time.Now()}
	r.begin(1, "Rotate secret/db")
	r.line("expected", "it rolls")
	r.line("result", "one")
	r.line("result", "two")
	r.block("$ explain", "first\n\nlast\n\n")
	r.block("and", "more\n")
	r.verdict(t.Context(), nil)
	r.begin(2, "Break it")
	r.verdict(t.Context(), errors.New("it is broken"))
	r.summary([]result{
		{title: "Rotate secret/db", ran: true, took: 1230 * time.Millisecond},
		{title: "Break it", ran: true, took: 12 * time.Second, err: errors.New("it is broken")},
		{title: "Go on"},
	})
	want := `
  1  Rotate secret/db
     expected  it rolls
     result    one
               two

       $ explain
       first

       last

       and
       more

     ok        in N

  2  Break it
     FAILED    after N: it is broken

     Summary
  1  Rotate secret/db   N  ok
  2  Break it           N  FAILED
  3  Go on                      not run
`
	got := someTime.ReplaceAllString(out.String(), "N")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestReportHasColoursOnATerminalOnly(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // A character device, as a terminal is.
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	for _, test := range []struct {
		name    string
		out     *os.File
		noColor string
		want    bool
	}{
		{name: "a terminal has colours", out: terminal, want: true},
		{name: "a file has none", out: file},
		{name: "NO_COLOR is respected", out: terminal, noColor: "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", test.noColor)
			t.Setenv("TERM", "xterm")
			if got := newReport(test.out).colour; got != test.want {
				t.Errorf("colour: got %t, want %t", got, test.want)
			}
		})
	}
}

func TestInterruptedStepHasNoVerdict(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &report{out: &out}
	r.verdict(ctx, ctx.Err())
	if strings.Contains(out.String(), "FAILED") {
		t.Errorf("got %q, want no verdict", out.String())
	}
}
