package inspect

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// standing is the state of a workload according to its outcomes, which are added in order, oldest first.
type standing struct {
	// held is the last outcome that says that the workload waits, and open has the sources of it that have had no other outcome since.
	held *events.Outcome
	open []string
	// last is the last outcome about the state of the workload. The outcome of a change that did not affect it says nothing about its rollout.
	last *events.Outcome
}

// add adds the next outcome.
func (s *standing) add(outcome events.Outcome) {
	if outcome.Verb == events.VerbHeld {
		s.held, s.open = &outcome, sourcesOf(outcome)
		return
	}
	if outcome.IsState() {
		s.last = &outcome
	}
	if s.held == nil || !outcome.StartedAt.IsZero() && outcome.StartedAt.Before(s.held.Time) {
		return // It may be about the end of an earlier rollout.
	}
	decided := sourcesOf(outcome)
	s.open = slices.DeleteFunc(s.open, func(source string) bool { return slices.Contains(decided, source) })
}

// waits reports whether the workload still waits according to its outcomes.
func (s *standing) waits() bool { return s.held != nil && len(s.open) > 0 }
