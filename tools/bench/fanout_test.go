package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASampleOfTheFloorIsBesideTheWavesOfItsLimit(t *testing.T) {
	for _, tt := range []struct {
		name, owner string
		way         way
		want        []way
	}{
		{name: "of the floor", owner: contenderFloor, way: way{limit: 50}, want: []way{{limit: 50}, {limit: 50, inWaves: true}}},
		{name: "of the floor without limit", owner: contenderFloor, want: []way{{}, {inWaves: true}}},
		{name: "of Keyturn", owner: contenderKeyturn, way: way{limit: 50}, want: []way{{limit: 50}}},
		{name: "of Keyturn in waves", owner: contenderKeyturn, way: way{inWaves: true}, want: []way{{inWaves: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.way.comparedWith(tt.owner)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(way{})); diff != "" {
				t.Errorf("ways (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoTwoWaysShareTheirResults(t *testing.T) {
	names := map[string]way{}
	for _, w := range []way{{}, {limit: fanOutLimit}, {inWaves: true}, {limit: fanOutLimit, inWaves: true}} {
		if other, taken := names[w.name()]; taken {
			t.Errorf("%+v and %+v are both %q", w, other, w.name())
		}
		names[w.name()] = w
	}
}

func TestWavesAreOfEqualSize(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		deployments, waves, most int
	}{
		{name: "of many", deployments: 5000, waves: fanOutWaves, most: 500},
		{name: "of a number that cannot be divided", deployments: 23, waves: fanOutWaves, most: 3},
		{name: "of fewer than there are waves", deployments: 3, waves: 3, most: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sizes := map[string]int{}
			for i := range tt.deployments {
				sizes[waveOf(i, tt.deployments)]++
			}
			if len(sizes) != tt.waves {
				t.Errorf("%d waves, want %d: %v", len(sizes), tt.waves, sizes)
			}
			for wave, size := range sizes {
				if size > tt.most {
					t.Errorf("wave %s has %d, want at most %d", wave, size, tt.most)
				}
			}
		})
	}
	if first, last := waveOf(0, 5000), waveOf(4999, 5000); first != `"0"` || last != `"9"` {
		t.Errorf("the first is in wave %s and the last in %s", first, last)
	}
}

func TestLinesOfTheFanOut(t *testing.T) {
	limited, waves := way{limit: fanOutLimit}.name(), way{limit: fanOutLimit, inWaves: true}.name()
	for _, tt := range []struct {
		name    string
		samples results
		want    []line
	}{
		{name: "not measured", samples: results{latency: both(2, 3)}, want: []line{}},
		{
			name: "as long as it may be", samples: results{limited: both(100, 130), waves: both(100, 150)},
			want: []line{
				{floor: "100.0 s", keyturn: "130.0 s", ratio: "1.30", target: "at most 1.3×", verdict: met},
				{floor: "100.0 s", keyturn: "150.0 s", ratio: "1.50"},
			},
		},
		{
			name: "longer", samples: results{limited: both(100, 131), limited + cpuOfPatching: both(0.5, 1.25)},
			want: []line{
				{floor: "100.0 s", keyturn: "131.0 s", ratio: "1.31", target: "at most 1.3×", verdict: missed},
				{floor: "0.50 ms", keyturn: "1.25 ms", ratio: "2.50"},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reportOf(t, tt.samples)
			r.settings.fanOut = 2000
			got := []line{}
			for _, l := range r.fanOutLines() {
				if l.keyturn != "" {
					l.what = ""
					got = append(got, l)
				}
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(line{})); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePageSaysHowTheFanOutIsMeasuredWhereItIs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fanOut int
	}{{name: "measured", fanOut: 4321}, {name: "not measured"}} {
		t.Run(tt.name, func(t *testing.T) {
			r := reportOf(t, results{latency: both(2, 3)})
			r.settings.fanOut = tt.fanOut
			path := filepath.Join(t.TempDir(), "benchmarks.md")
			if err := r.writeFile(path); err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(string(page), "4321 Deployments"); said != (tt.fanOut > 0) {
				t.Errorf("it is said: %v", said)
			}
			if strings.Contains(string(page), "\n\n\n") {
				t.Error("two empty lines follow each other")
			}
		})
	}
}
