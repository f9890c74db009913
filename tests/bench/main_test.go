package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		ok   bool
	}{
		{name: "no flags are the whole bench", ok: true},
		{name: "some measurements of a small one", args: []string{"-run", "latency", "-scale", "0.1", "-rounds", "2"}, ok: true},
		{name: "a report of the whole bench", args: []string{"-write", "x.md"}, ok: true},
		{name: "no report of some measurements", args: []string{"-write", "x.md", "-run", "latency"}},
		{name: "no report of a small one", args: []string{"-write", "x.md", "-scale", "0.5"}},
		{name: "a regexp that is none", args: []string{"-run", "("}},
		{name: "a scale of nothing", args: []string{"-scale", "0"}},
		{name: "no rounds", args: []string{"-rounds", "0"}},
		{name: "an argument", args: []string{"latency"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parse(tt.args); (err == nil) != tt.ok {
				t.Errorf("parse(%q): %v", tt.args, err)
			}
		})
	}
}

func TestRoundsNeeded(t *testing.T) {
	for _, tt := range []struct {
		name, run string
		want      int
	}{
		{name: "for everything", want: 5},
		{name: "for one measurement of the rounds", run: "burst-300", want: 5},
		{name: "not for the memory", run: "^memory$", want: 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parse([]string{"-run", tt.run})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.roundsNeeded(); got != tt.want {
				t.Errorf("%d rounds, want %d", got, tt.want)
			}
		})
	}
}
