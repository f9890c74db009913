package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/tests/testkit"
)

func reportOf(t *testing.T, samples results) *report {
	t.Helper()
	s, err := parse(nil)
	testkit.Must(t, err)
	return &report{results: samples, cluster: newCluster(s.scale), settings: s, facts: []fact{{"Cores", "2"}}}
}

func both(floor, keyturn float64) map[string][]float64 {
	return map[string][]float64{contenderConfined: {floor}, contenderKeyturn: {keyturn}}
}

func TestVerdicts(t *testing.T) {
	limited := way{limit: fanOutLimit}.name()
	pod := func(value float64) map[string][]float64 { return map[string][]float64{contenderPod: {value}} }
	for _, tt := range []struct {
		name    string
		samples results
		want    []string
	}{
		{name: "nothing was measured"},
		{name: "a latency as long as it may be", samples: results{latency: both(2, 2.4)}, want: []string{met, ""}},
		{name: "a longer one", samples: results{latency: both(2, 2.5)}, want: []string{missed, ""}},
		{name: "a rate as low as it may be", samples: results{burst300: both(100, 85)}, want: []string{met}},
		{
			name: "traces that cost more than they may", want: []string{met, missed},
			samples: results{burst300: {contenderConfined: {100}, contenderKeyturn: {100}, contenderTraced: {89}}},
		},
		{
			name: "a line of the second core", want: []string{met, ""},
			samples: results{burst300: {contenderConfined: {100}, contenderKeyturn: {100}, contenderOneCore: {80}}},
		},
		{name: "a lower one", samples: results{burst1000: both(100, 84)}, want: []string{missed}},
		{name: "a shared Secret that takes longer", samples: results{shared: both(50, 63)}, want: []string{missed}},
		{
			name: "a patch and a Kubernetes Event for each workload", want: []string{met, "", met},
			samples: results{requests: both(1, 2), kubeEvents: both(0, 1), otherRequests: both(1, 1)},
		},
		{
			name: "more than those", want: []string{missed, "", missed},
			samples: results{requests: both(1, 2.1), kubeEvents: both(0, 1), otherRequests: both(1, 1.1)},
		},
		{
			name: "the floor without the policies beside the other", want: []string{met, "", ""},
			samples: results{latency: {contenderFloor: {1}, contenderConfined: {2}, contenderKeyturn: {2}}},
		},
		{
			name: "memory within its bounds",
			samples: results{
				resident: {contenderKeyturn: {88}}, resident + anonymous: {contenderKeyturn: {40}}, residentBusy: {contenderKeyturn: {138}},
				residentBusy + anonymous: {contenderKeyturn: {90}}, peak: {contenderKeyturn: {200}},
			},
			want: []string{met, met, met, met, met},
		},
		{
			name: "more memory", samples: results{resident: {contenderKeyturn: {89}}, peak: {contenderKeyturn: {201}}},
			want: []string{missed, missed},
		},
		{
			name: "one pod of each size", samples: results{podSizes[0].name(): pod(55), podSizes[1].name(): pod(76)},
			want: []string{met, missed},
		},
		{
			name:    "a fan-out that takes and costs as much as it may",
			samples: results{limited: both(100, 120), limited + ofServers: both(30, 33)}, want: []string{met, met},
		},
		{name: "one that takes longer", samples: results{limited: both(100, 121)}, want: []string{missed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reportOf(t, tt.samples)
			var got []string
			for _, l := range r.lines() {
				got = append(got, l.Verdict)
			}
			testkit.WantEqual(t, "verdicts", tt.want, got)
			if want := strings.Contains(strings.Join(tt.want, " "), missed); r.missed() != want {
				t.Errorf("missed is %v, want %v", r.missed(), want)
			}
		})
	}
}

func TestVerdictsOfWhatTakesReloadersPlace(t *testing.T) {
	samples := func(keyturn, mode, command float64) map[string][]float64 {
		return map[string][]float64{contenderConfined: {10}, contenderKeyturn: {keyturn}, contenderMode: {mode}, contenderCommand: {command}}
	}
	for _, tt := range []struct {
		name    string
		samples results
		want    []modeLine
	}{
		{name: "nothing was measured of them", samples: results{burst300: both(100, 100)}},
		{
			name: "rates as low as they may be", samples: results{burst300: samples(12, 10, 10)},
			want: []modeLine{{Keyturn: "1.20", Mode: "1.00", Command: "1.00", ModeToKeyturn: "0.83", CommandToKeyturn: "0.83", Verdict: met}},
		},
		{
			name: "a longer time of the command", samples: results{shared: samples(10, 12, 12.1)},
			want: []modeLine{{Keyturn: "1.00", Mode: "1.20", Command: "1.21", ModeToKeyturn: "1.20", CommandToKeyturn: "1.21", Verdict: missed}},
		},
		{
			name: "what the floor has none of", samples: results{idle: {contenderKeyturn: {4}, contenderMode: {4}, contenderCommand: {2}}},
			want: []modeLine{{ModeToKeyturn: "1.00", CommandToKeyturn: "0.50"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reportOf(t, tt.samples)
			got := r.modeLines()
			ignored := cmpopts.IgnoreFields(modeLine{}, "What", "Target")
			testkit.WantEqual(t, "lines", tt.want, got, ignored, cmpopts.EquateEmpty())
			if want := len(tt.want) > 0 && tt.want[0].Verdict == missed; r.missed() != want {
				t.Errorf("missed is %v, want %v", r.missed(), want)
			}
		})
	}
}

func TestReportHasALineForEachMeasurement(t *testing.T) {
	name := way{limit: fanOutLimit}.name()
	r := reportOf(t, results{
		latency: both(2, 3), peak: {contenderKeyturn: {150}, contenderCommand: {226}}, oldBurst: {contenderOld: {77}, contenderKeyturn: {88}},
		name:                             both(100, 121),
		name + ofServers:                 ofAll(36, 36.5, 37, 38, 41),
		name + ofRequest + "POST events": ofAll(4, 4, 4, 4, 6),
		name + ofRequest + "GET nodes":   ofAll(0.01, 0.01, 0.01, 0.01, 0.01),
	})
	r.settings.fanOut = 4321
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	testkit.Must(t, r.writeFile(path))
	page, err := os.ReadFile(path)
	testkit.Must(t, err)
	var printed strings.Builder
	r.print(&printed)
	for name, text := range map[string]string{"the page": string(page), "the terminal": printed.String()} {
		for _, want := range []string{
			"1.50", "at most 1.2×", "4321 Deployments", "150 MB", "1.51", "at most 200 MB", "Cores", "at most 1.2× Keyturn", "77/s",
			"41.0 ms (+5.00)", "6.00 (+2.00)",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "GET nodes") {
			t.Errorf("%s has requests that hardly anybody makes:\n%s", name, text)
		}
	}
	if strings.Contains(string(page), "<no value>") || strings.Contains(string(page), "\n\n\n") {
		t.Errorf("the page has a hole:\n%s", page)
	}
}

// ofAll returns samples of each of splitContenders.
func ofAll(values ...float64) map[string][]float64 {
	samples := make(map[string][]float64)
	for i, c := range splitContenders {
		samples[c] = []float64{values[i]}
	}
	return samples
}

func TestVerdictsOfTheEarlierBuild(t *testing.T) {
	turns := func(old, now float64) map[string][]float64 {
		return map[string][]float64{contenderOld: {old, old}, contenderKeyturn: {now, 2 * now}}
	}
	r := reportOf(t, results{oldBurst: turns(100, 100), oldBurst + untilPatched: turns(3, 1.3), oldBurst + untilTold: turns(3, 1.5)})
	var got []string
	for _, l := range r.oldLines() {
		if l.Target != "" {
			got = append(got, l.Verdict)
		}
	}
	if diff := cmp.Diff([]string{met, missed}, got); diff != "" || !r.missed() {
		t.Errorf("missed is %v, verdicts (-want +got):\n%s", r.missed(), diff)
	}
}

func TestAFigureHasTheRangeOfItsSamples(t *testing.T) {
	for _, tt := range []struct {
		name, format string
		samples      []float64
		want         string
	}{
		{"none", "%.1f ms", nil, ""},
		{"several that are alike", "%.3f", []float64{1, 1.0001}, "1.000"},
		{"several", "%.1f ms", []float64{2, 1, 4}, "2.0 ms (1.0 to 4.0)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := figure(tt.format, tt.samples); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
