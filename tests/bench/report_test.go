package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{
			name:    "more memory",
			samples: results{resident: {contenderKeyturn: {121}}, peak: {contenderKeyturn: {201}}},
			want:    []string{missed, missed},
		},
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

func TestReportHasALineForEachMeasurement(t *testing.T) {
	r := reportOf(t, results{latency: both(2, 3), peak: {contenderKeyturn: {150}}})
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
		for _, want := range []string{"1.50", "at most 3×", "150 MB", "below 200 MB", "Cores"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", name, want, text)
			}
		}
	}
	if strings.Contains(string(page), "<no value>") {
		t.Error("the page has a hole")
	}
}
