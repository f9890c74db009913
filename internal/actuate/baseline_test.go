package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestTheBaselineIsTheEventBefore(t *testing.T) {
	at := func(version string, mutate func(*events.Change)) events.Change {
		return changeOf(func(c *events.Change) {
			c.ResourceVersion = version
			if mutate != nil {
				mutate(c)
			}
		})
	}
	deleted := func(c *events.Change) { c.Verb = events.VerbDeleted }
	ignored := func(c *events.Change) { c.Ignore = true }
	another := func(c *events.Change) { c.Source = app }
	tests := []struct {
		name   string
		before []events.Change
		now    events.Change
		want   string // its resourceVersion
	}{
		{name: "the first event has none", now: at("100", nil)},
		{name: "a later one has the one before", before: []events.Change{at("90", nil), at("95", nil)}, now: at("100", nil), want: "95"},
		{name: "one that comes again has none", before: []events.Change{at("90", nil), at("100", nil)}, now: at("100", nil)},
		{name: "one that comes late has none", before: []events.Change{at("90", nil), at("110", nil)}, now: at("100", nil)},
		{name: "the events of other sources do not count", before: []events.Change{at("90", another)}, now: at("100", nil)},
		{name: "a deletion says nothing of what the pods have", before: []events.Change{at("90", nil), at("95", deleted)}, now: at("100", nil)},
		{name: "nor does what was ignored", before: []events.Change{at("90", nil), at("95", ignored)}, now: at("100", nil)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			known := make(baselines)
			for _, change := range test.before {
				known.next(change, true)
			}
			got := ""
			if from := known.next(test.now, true); from != nil {
				got = from.ResourceVersion
			}
			if got != test.want {
				t.Errorf("got the event at %q, want the one at %q", got, test.want)
			}
		})
	}
	t.Run("one that comes late is not what the next is compared with", func(t *testing.T) {
		known := make(baselines)
		for _, version := range []string{"90", "110", "100"} {
			known.next(at(version, nil), true)
		}
		if from := known.next(at("120", nil), true); from == nil || from.ResourceVersion != "110" {
			t.Errorf("got %v, want the event at 110", from)
		}
	})
	t.Run("nothing is kept of a source that concerns no workload", func(t *testing.T) {
		known := make(baselines)
		known.next(at("90", nil), true)
		if from := known.next(at("95", nil), false); from != nil || len(known) != 0 {
			t.Errorf("got %v, and %d events are kept", from, len(known))
		}
	})
}
