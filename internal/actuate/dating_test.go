package actuate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestTheHistoryDatesChanges(t *testing.T) {
	event := func(version string, minutes int, mutate func(*events.Change)) events.Change {
		return changeOf(func(c *events.Change) {
			c.ResourceVersion, c.WrittenAt = version, written.Add(time.Duration(minutes)*time.Minute)
			if mutate != nil {
				mutate(c)
			}
		})
	}
	// It is a change of the key user. The key password changed before, at 95.
	now := event("100", 0, func(c *events.Change) {
		c.Changed = []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
	})
	tests := []struct {
		name    string
		history []events.Change
		want    map[string]int // minutes by version
	}{
		{"none", nil, map[string]int{}},
		{"the change itself", []events.Change{event("90", -90, nil), event("95", -60, nil)}, map[string]int{"95": -60}},
		{"the oldest event after the change", []events.Change{event("90", -90, nil), event("97", -30, nil), event("98", -20, nil)}, map[string]int{"95": -30}},
		{"the event that is asked about", []events.Change{event("95", -60, nil), now}, map[string]int{"95": -60, "100": 0}},
		{"not a deletion", []events.Change{event("96", -40, func(c *events.Change) { c.Verb = events.VerbDeleted })}, map[string]int{}},
		{"not an earlier object of this name", []events.Change{event("96", -40, func(c *events.Change) { c.UID = "other" })}, map[string]int{}},
		{"not an event without a time", []events.Change{event("96", 0, func(c *events.Change) { c.WrittenAt = time.Time{} })}, map[string]int{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDating(now)
			for _, earlier := range test.history {
				d.add(earlier)
			}
			want := make(map[string]time.Time)
			for version, minutes := range test.want {
				want[version] = written.Add(time.Duration(minutes) * time.Minute)
			}
			if diff := cmp.Diff(want, d.written); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
