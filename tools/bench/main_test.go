package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"a report of some measurements", []string{"-write", "x.md", "-run", "latency"}},
		{"a report of a small bench", []string{"-write", "x.md", "-scale", "0.5"}},
		{"a regexp that is none", []string{"-run", "("}},
		{"a scale of nothing", []string{"-scale", "0"}},
		{"no rounds", []string{"-rounds", "0"}},
		{"a fan-out that is not selected", []string{"-run", "latency", "-fan-out", "20"}},
		{"a fan-out of more than there is room for", []string{"-fan-out", "20001"}},
		{"a large cluster that is not selected", []string{"-run", "latency", "-large"}},
		{"an earlier build that is not selected", []string{"-run", "latency", "-old", "../old"}},
		{"an argument", []string{"latency"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parse(tt.args); err == nil {
				t.Error("it is accepted")
			}
		})
	}
}

func TestWhatIsAskedForIsMeasured(t *testing.T) {
	for _, tt := range []struct {
		name           string
		args           []string
		fanOut, rounds int
		large, without bool
	}{
		{name: "no flags", rounds: 5, without: true},
		{name: "a fan-out, too", args: []string{"-fan-out", "5000", "-reloader", "-write", "x.md"}, fanOut: 5000, rounds: 5, without: true},
		{name: "the fan-out alone", args: []string{"-run", "fan-out"}, fanOut: 2000},
		{name: "what splits its costs", args: []string{"-run", "fan-out-split"}, fanOut: 2000},
		{name: "the fan-out alone, with a number", args: []string{"-run", "^fan-out$", "-fan-out", "30", "-scale", "0.01"}, fanOut: 30},
		{name: "one measurement of the rounds", args: []string{"-run", "burst-300", "-rounds", "2"}, rounds: 2, without: true},
		{name: "the memory", args: []string{"-run", "^memory$"}, without: true},
		{name: "a large cluster", args: []string{"-run", "large"}, large: true},
		{name: "an earlier build", args: []string{"-run", "^old$", "-old", "../old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parse(tt.args)
			testkit.Must(t, err)
			if s.fanOut != tt.fanOut || s.roundsNeeded() != tt.rounds || s.large != tt.large || s.withoutPods() != tt.without {
				t.Errorf("got %+v, with %d rounds, and others measured: %v", s, s.roundsNeeded(), s.withoutPods())
			}
		})
	}
}
