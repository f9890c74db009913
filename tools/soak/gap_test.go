package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestGapsBeginWithTheFirstChangeThatAPatchIsFor(t *testing.T) {
	s := newScene()
	s.db(10, "3", "1")
	s.db(12, "4", "1")
	s.rolled(20, 12, 5) // for two changes
	s.app(21, "3")
	s.app(22, "2")
	s.app(25, "3")
	s.rolled(27, 12, 25) // for one that was made, undone and made again
	s.db(30, "4", "9")
	s.db(40, "5", "9")
	s.recorded(44, 40, 25) // for the second one; the first is of another key
	var got []time.Duration
	for _, g := range (evidence{journal: s.journal, readers: []reader{web}, from: prepared}).gaps() {
		got = append(got, g.to.Sub(g.from))
	}
	testkit.WantEqual(t, "gaps", []time.Duration{10 * time.Second, 2 * time.Second, 4 * time.Second}, got)
}

func TestBlame(t *testing.T) {
	faults := []inflicted{{kind: watcherKill, from: clock(100), to: clock(110)}, {kind: etcdStop, from: clock(105), to: clock(120)}}
	after := int64(recovery / time.Second)
	for _, tt := range []struct {
		name     string
		from, to int64
		kinds    []kind
		since    int64
	}{
		{name: "until the first begins", from: 90, to: 100, kinds: []kind{watcherKill}, since: 90},
		{name: "over both", from: 90, to: 130, kinds: []kind{watcherKill, etcdStop}, since: 120},
		{name: "changed right after both", from: 125, to: 130, kinds: []kind{watcherKill, etcdStop}, since: 125},
		{name: "when the first is long over", from: 115 + after, to: 117 + after, kinds: []kind{etcdStop}, since: 115 + after},
		{name: "when both are long over", from: 121 + after, to: 122 + after, since: 121 + after},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := blamed(faults, clock(tt.from), clock(tt.to))
			if diff := cmp.Diff(tt.kinds, b.kinds); diff != "" || !b.since.Equal(clock(tt.since)) {
				t.Errorf("since %s, want %s; kinds (-want +got):\n%s", b.since, clock(tt.since), diff)
			}
		})
	}
}
