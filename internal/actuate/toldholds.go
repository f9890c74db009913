package actuate

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// toldHolds has, by workload, the last outcome of an earlier leader that said that it waits. What was told is not told again by each leader.
type toldHolds map[workload.Key]events.Outcome

// resume takes the last outcome of a workload.
func (t toldHolds) resume(last events.Outcome) {
	if last.Verb == events.VerbHeld {
		t[workload.KeyOf(last.Workload)] = last
	}
}

// has reports whether an earlier leader has told that the workload waits for the same reason, with all of the same changes.
func (t toldHolds) has(held events.Outcome) bool {
	last, known := t[workload.KeyOf(held.Workload)]
	return known && last.Reason == held.Reason && !slices.ContainsFunc(held.Sources, func(waits events.OutcomeSource) bool {
		return !slices.ContainsFunc(last.Sources, func(told events.OutcomeSource) bool {
			return told.Source == waits.Source && told.Event == waits.Event
		})
	})
}
