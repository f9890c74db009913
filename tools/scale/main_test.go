package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want settings
		err  string
	}{
		{name: "the defaults", want: settings{sizes: []int{50, 100, 200}, sources: 2000, sustain: 20 * time.Second, changed: 0.05}},
		{
			name: "all of them",
			args: []string{"-clusters", "2,3,4", "-sources", "5", "-sustain", "1s", "-changed", "1", "-shared", "-write", "x.md"},
			want: settings{
				sizes: []int{2, 3, 4}, sources: 5, sustain: time.Second, changed: 1, shared: true, write: "x.md",
			},
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
	testkit.Nightly(t)
	page := filepath.Join(t.TempDir(), "scale.md")
	args := []string{"-clusters", "2,4", "-sources", "20", "-sustain", "200ms", "-changed", "0.5", "-shared", "-write", page}
	if err := run(t.Context(), "../../deploy/nats", args); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	own, shared, found := strings.Cut(string(written), "## One set of streams")
	if !found {
		t.Fatalf("the page does not compare:\n%s", written)
	}
	checkRows(t, own, columnsOf(false))
	checkRows(t, shared, columnsOf(true))
}

// checkRows checks the rows of a table of a page: one for 2 clusters, and one for 4.
func checkRows(t *testing.T, page string, columns []column) {
	t.Helper()
	var rows []map[string]string
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != len(columns) || strings.TrimSpace(cells[0]) == "clusters" || strings.Contains(cells[0], "---") {
			continue
		}
		row := make(map[string]string)
		for i, cell := range cells {
			row[columns[i].title] = strings.TrimSpace(cell)
		}
		rows = append(rows, row)
	}
	if len(rows) != 2 {
		t.Fatalf("the page has %d rows, want one for each number of clusters:\n%s", len(rows), page)
	}
	for i, want := range []struct{ clusters, sources, missed string }{{"2", "40", " for 10 of 1"}, {"4", "80", " for 20 of 2"}} {
		row := rows[i]
		if row["clusters"] != want.clusters || row["sources"] != want.sources || !strings.HasSuffix(row["catch-up"], want.missed) {
			t.Errorf("row %d: got %q, want %+v", i, row, want)
		}
		for title, cell := range row {
			if cell == "" || cell == "0" && title != "retries" {
				t.Errorf("row %d: %s is %q", i, title, cell)
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
