package main

import (
	"bytes"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
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
	testkit.WantEqual(t, "report", want, got)
}
