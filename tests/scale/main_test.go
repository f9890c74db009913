package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want settings
		err  string
	}{
		{name: "the defaults", want: settings{sizes: []int{50, 200}, sources: 2000, sustain: 20 * time.Second, changed: 0.05}},
		{
			name: "all of them", args: []string{"-clusters", "2,3,4", "-sources", "5", "-sustain", "1s", "-changed", "1", "-write", "x.md"},
			want: settings{sizes: []int{2, 3, 4}, sources: 5, sustain: time.Second, changed: 1, write: "x.md"},
		},
		{name: "one cluster has no other half", args: []string{"-clusters", "1"}, err: `-clusters: "1" is not a number of 2 or more`},
		{name: "clusters do not go", args: []string{"-clusters", "4,2"}, err: "-clusters: want each number larger than the one before"},
		{name: "a step is a step", args: []string{"-clusters", "2,2"}, err: "-clusters: want each number larger than the one before"},
		{name: "a cluster has sources", args: []string{"-sources", "0"}, err: "-sources: 0 is too few"},
		{name: "a share is one", args: []string{"-changed", "1.5"}, err: "-changed: 1.5 is no share"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(tt.args)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error with %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(settings{})); diff != "" || err != nil {
				t.Errorf("settings, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestASmallRunMeasuresEverything(t *testing.T) {
	page := filepath.Join(t.TempDir(), "scale.md")
	args := []string{"-clusters", "2,4", "-sources", "20", "-sustain", "200ms", "-changed", "0.5", "-write", page}
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(written)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == len(columns) && strings.TrimSpace(cells[0]) != "clusters" && !strings.Contains(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	if len(rows) != 2 {
		t.Fatalf("the page has %d rows, want one for each number of clusters:\n%s", len(rows), written)
	}
	for i, want := range []struct{ clusters, sources, missed string }{{"2", "40", " for 10 of 1"}, {"4", "80", " for 20 of 2"}} {
		cells := rows[i]
		if strings.TrimSpace(cells[0]) != want.clusters || strings.TrimSpace(cells[1]) != want.sources || !strings.Contains(cells[9], want.missed) {
			t.Errorf("row %d: got %q, want %+v", i, cells, want)
		}
		for column, cell := range cells {
			if text := strings.TrimSpace(cell); text == "" || text == "0" && column < 4 {
				t.Errorf("row %d: %s is %q", i, columns[column], text)
			}
		}
	}
}

func TestNumbersAreWrittenWithCommas(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 4_000_000: "4,000,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
