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
		{name: "the fan-out too, and a report", args: []string{"-fan-out", "5000", "-strict", "-reloader", "-write", "x.md"}, ok: true},
		{name: "the fan-out alone", args: []string{"-run", "fan-out", "-fan-out", "20"}, ok: true},
		{name: "a fan-out that is not selected", args: []string{"-run", "latency", "-fan-out", "20"}},
		{name: "a fan-out of less than nothing", args: []string{"-fan-out", "-1"}},
		{name: "a fan-out of more than there is room for", args: []string{"-fan-out", "20001"}},
		{name: "a large cluster alone", args: []string{"-run", "large"}, ok: true},
		{name: "a large cluster that is not selected", args: []string{"-run", "latency", "-large"}},
		{name: "an argument", args: []string{"latency"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parse(tt.args); (err == nil) != tt.ok {
				t.Errorf("parse(%q): %v", tt.args, err)
			}
		})
	}
}

func TestTheFanOutIsMeasuredWhereItIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		want    int
		without bool
	}{
		{name: "not by default", without: true},
		{name: "beside everything else", args: []string{"-fan-out", "5000"}, want: 5000, without: true},
		{name: "alone", args: []string{"-run", "fan-out"}, want: 2000},
		{name: "alone and small", args: []string{"-run", "fan-out", "-scale", "0.01"}, want: 20},
		{name: "alone, with a number", args: []string{"-run", "^fan-out$", "-fan-out", "30", "-scale", "0.01"}, want: 30},
		{name: "by what matches everything", args: []string{"-run", "."}, want: 2000, without: true},
		{name: "not with another measurement", args: []string{"-run", "memory"}, without: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parse(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if s.fanOut != tt.want || s.withoutPods() != tt.without {
				t.Errorf("%d Deployments, and others measured: %v; want %d and %v", s.fanOut, s.withoutPods(), tt.want, tt.without)
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
		{name: "not for the fan-out", run: "fan-out", want: 0},
		{name: "not for a large cluster", run: "large", want: 0},
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
