package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func reportOf(t *testing.T, samples results) *report {
	t.Helper()
	s, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &report{results: samples, cluster: newCluster(nil, s.scale), settings: s, facts: []fact{{"Cores", "2"}}}
}

func both(floor, keyturn float64) map[string][]float64 {
	return map[string][]float64{contenderFloor: {floor}, contenderKeyturn: {keyturn}}
}

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		samples results
		want    []string
	}{
		{name: "nothing was measured"},
		{name: "a latency as long as it may be", samples: results{latency: both(2, 6)}, want: []string{met, ""}},
		{name: "a longer one", samples: results{latency: both(2, 6.1)}, want: []string{missed, ""}},
		{name: "a rate as low as it may be", samples: results{burst300: both(100, 70)}, want: []string{met}},
		{
			name: "traces that cost as much as they may", want: []string{met, met},
			samples: results{burst300: {contenderFloor: {100}, contenderKeyturn: {100}, contenderTraced: {90}}},
		},
		{
			name: "traces that cost more", want: []string{met, missed},
			samples: results{burst300: {contenderFloor: {100}, contenderKeyturn: {100}, contenderTraced: {89}}},
		},
		{name: "a lower one", samples: results{burst1000: both(100, 69)}, want: []string{missed}},
		{name: "a shared Secret that takes as long as it may", samples: results{shared: both(50, 100)}, want: []string{met}},
		{name: "one that takes longer", samples: results{shared: both(50, 101)}, want: []string{missed}},
		{name: "a request for each workload", samples: results{requests: both(1, 1)}, want: []string{met}},
		{name: "more than that", samples: results{requests: both(1, 1.001)}, want: []string{missed}},
		{
			name: "memory within its bounds",
			samples: results{
				resident: {contenderKeyturn: {119}}, peak: {contenderKeyturn: {199}},
			},
			want: []string{met, met},
		},
		{name: "more memory", samples: results{resident: {contenderKeyturn: {121}}, peak: {contenderKeyturn: {201}}}, want: []string{missed, missed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reportOf(t, tt.samples)
			var got []string
			for _, l := range r.lines() {
				got = append(got, l.verdict)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			if want := strings.Contains(strings.Join(tt.want, " "), missed); r.missed() != want {
				t.Errorf("missed is %v, want %v", r.missed(), want)
			}
		})
	}
}

func TestVerdictsOfWhatTakesReloadersPlace(t *testing.T) {
	samples := func(keyturn, mode, command float64) map[string][]float64 {
		return map[string][]float64{contenderFloor: {10}, contenderKeyturn: {keyturn}, contenderMode: {mode}, contenderCommand: {command}}
	}
	for _, tt := range []struct {
		name    string
		samples results
		want    []modeLine
	}{
		{name: "nothing was measured of them", samples: results{burst300: both(100, 100)}},
		{
			name: "rates as low as they may be", samples: results{burst300: samples(12, 10, 10)},
			want: []modeLine{{keyturn: "1.20", mode: "1.00", command: "1.00", modeToKeyturn: "0.83", commandToKeyturn: "0.83", verdict: met}},
		},
		{
			name: "a lower rate of the mode", samples: results{burst300: samples(12, 9.8, 12)},
			want: []modeLine{{keyturn: "1.20", mode: "0.98", command: "1.20", modeToKeyturn: "0.82", commandToKeyturn: "1.00", verdict: missed}},
		},
		{
			name: "a longer time of the command", samples: results{shared: samples(10, 12, 12.1)},
			want: []modeLine{{keyturn: "1.00", mode: "1.20", command: "1.21", modeToKeyturn: "1.20", commandToKeyturn: "1.21", verdict: missed}},
		},
		{
			name: "what the floor has none of", samples: results{idle: {contenderKeyturn: {4}, contenderMode: {4}, contenderCommand: {2}}},
			want: []modeLine{{modeToKeyturn: "1.00", commandToKeyturn: "0.50"}},
		},
		{
			name: "more Kubernetes Events", samples: results{kubeEvents: samples(1, 2, 2)},
			want: []modeLine{{keyturn: "0.10", mode: "0.20", command: "0.20", modeToKeyturn: "2.00", commandToKeyturn: "2.00"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reportOf(t, tt.samples)
			got := r.modeLines()
			ignored := cmpopts.IgnoreFields(modeLine{}, "what", "target")
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(modeLine{}), ignored, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if want := len(tt.want) > 0 && tt.want[0].verdict == missed; r.missed() != want {
				t.Errorf("missed is %v, want %v", r.missed(), want)
			}
		})
	}
}

func TestReportHasALineForEachMeasurement(t *testing.T) {
	r := reportOf(t, results{latency: both(2, 3), peak: {contenderKeyturn: {150}, contenderCommand: {226}}})
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := r.writeFile(path); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	r.print(&printed)
	for name, text := range map[string]string{"the page": string(page), "the terminal": printed.String()} {
		for _, want := range []string{"1.50", "at most 3×", "150 MB", "1.51", "below 200 MB", "Cores", "at most 1.2× Keyturn"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", name, want, text)
			}
		}
	}
	if strings.Contains(string(page), "<no value>") {
		t.Error("the page has a hole")
	}
}

func TestAFigureHasTheRangeOfItsSamples(t *testing.T) {
	for _, tt := range []struct {
		name, format string
		samples      []float64
		want         string
	}{
		{"none", "%.1f ms", nil, ""},
		{"one", "%.1f ms", []float64{2}, "2.0 ms"},
		{"several that are alike", "%.3f", []float64{1, 1.0001}, "1.000"},
		{"several", "%.1f ms", []float64{2, 1, 4}, "2.0 ms (1.0 to 4.0)"},
		{"several rates", "%.0f/s", []float64{100, 90, 120}, "100/s (90 to 120)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := figure(tt.format, tt.samples); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
