package main

import (
	"strings"
	"testing"
)

func TestFleetIsComparedWithWhatWasPublished(t *testing.T) {
	// The cluster a has two sources. The first one was published once, the second one three times.
	id := func(source, version int) string {
		c := newCluster("a", 2)
		c.versions[source] = version
		change := c.change(source)
		return "a/" + change.ID()
	}
	tests := []struct {
		name string
		ids  []string
		err  string
	}{
		{name: "all events", ids: []string{id(0, 1), id(1, 1), id(1, 2), id(1, 3)}},
		{name: "the last ones", ids: []string{id(1, 3), id(0, 1)}},
		{name: "one that was stored at the second attempt", ids: []string{id(0, 1) + "@7", id(1, 3)}},
		{name: "one is doubled", ids: []string{id(0, 1), id(1, 3), id(0, 1)}, err: `after version 1 of the source: it is doubled`},
		{name: "an old one comes late", ids: []string{id(1, 2), id(1, 1)}, err: `after version 2 of the source: it is doubled`},
		{name: "the last one of a source is lost", ids: []string{id(0, 1), id(1, 2)}, err: "FLEET lacks the last event of 1 sources"},
		{name: "all is lost", err: "FLEET lacks the last event of 2 sources"},
		{name: "another cluster's", ids: []string{strings.Replace(id(0, 1), "a/", "b/", 1)}, err: "which is of no cluster"},
		{name: "a source that the cluster does not have", ids: []string{strings.Replace(id(0, 1), "/00000000", "/00000002", 1)}, err: errID.Error()},
		{name: "no event", ids: []string{"a/x"}, err: errID.Error()},
		{name: "no number", ids: []string{id(0, 1) + "x"}, err: errID.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster("a", 2)
			c.versions = []int{1, 3}
			f := newFleet(nil)
			f.add(c)
			var err error
			for _, id := range tt.ids {
				if err = f.note(id); err != nil {
					break
				}
			}
			if err == nil {
				err = f.complete()
			}
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q", err, tt.err)
			case tt.err == "" && f.stored != len(tt.ids):
				t.Errorf("%d events are counted, want %d", f.stored, len(tt.ids))
			}
		})
	}
}

func TestTheLastEventOfAClusterIsTheOneThatWasStoredLast(t *testing.T) {
	c := newCluster("a", 3)
	c.versions, c.sequences = []int{1, 2, 1}, []uint64{4, 9, 5}
	last := c.last()
	source, version, err := c.parseID("a/" + last.ID())
	if source != 1 || version != 2 || err != nil {
		t.Errorf("got version %d of source %d, %v, want version 2 of source 1", version, source, err)
	}
}
