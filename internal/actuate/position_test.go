package actuate

import (
	"testing"
	"time"
)

func TestAnEventIsEarlierOnlyIfTheStreamSaysSo(t *testing.T) {
	last := position{seq: 10, storedAt: written, uid: "uid", version: "100"}
	at := func(mutate func(*position)) position {
		p := last
		mutate(&p)
		return p
	}
	earlier, later := written.Add(-time.Second), written.Add(time.Second)
	tests := []struct {
		name string
		p    position
		want bool
	}{
		{"the same event", last, false},
		{"stored before", at(func(p *position) { p.seq, p.storedAt = 9, earlier }), true},
		{"stored before, with the same resourceVersion", at(func(p *position) { p.seq, p.storedAt, p.version = 9, earlier, "100" }), true},
		{"stored before, of another object", at(func(p *position) { p.seq, p.storedAt, p.uid, p.version = 9, earlier, "old", "900" }), true},
		{"stored after", at(func(p *position) { p.seq, p.storedAt = 11, later }), false},
		{"stored after, of a restored cluster", at(func(p *position) { p.seq, p.storedAt, p.version = 11, later, "50" }), false},
		{"stored in a new stream", at(func(p *position) { p.seq, p.storedAt, p.version = 1, later, "110" }), false},
		{"stored in a new stream, of another object", at(func(p *position) { p.seq, p.storedAt, p.uid, p.version = 1, later, "new", "50" }), false},
		{"stored before by a clock that is ahead", at(func(p *position) { p.seq, p.storedAt, p.version = 9, later, "90" }), true},
		{"stored after by a clock that is behind", at(func(p *position) { p.seq, p.storedAt, p.version = 11, earlier, "110" }), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.p.isBefore(last); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
