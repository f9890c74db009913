package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTimelineIsInTheOrderOfTimeSinceItsFirstMark(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	for _, test := range []struct {
		name      string
		marks     []mark
		want, err string
	}{
		{
			name: "marks that were seen in another order than expected change places",
			marks: []mark{
				{"written", start, "version 2"},
				{"synced", after(48), "externalsecret/db"},
				{"changed", after(36), "secret/db"},
				{"ready", after(1551), "3 new pods"},
			},
			want: "     timeline      +0 ms  written  version 2\n" +
				"                  +36 ms  changed  secret/db\n" +
				"                  +48 ms  synced   externalsecret/db\n" +
				"                +1551 ms  ready    3 new pods\n",
		},
		{
			name:  "a mark that was not seen is wrong",
			marks: []mark{{"written", start, "version 2"}, {"forced", time.Time{}, "externalsecret/db"}},
			err:   "forced was not seen: externalsecret/db",
		},
		{
			name:  "a mark before what led to it is wrong",
			marks: []mark{{"written", start, "version 2"}, {"ready", after(-1), "3 new pods"}},
			err:   "ready was before written: 3 new pods",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			got := ""
			if err := (&report{out: &out}).timeline(test.marks...); err != nil {
				got = err.Error()
			}
			if got != test.err {
				t.Errorf("error: got %q, want %q", got, test.err)
			}
			testkit.WantEqual(t, "timeline", test.want, out.String())
		})
	}
}
