package inspect

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// standing is what a workload waits for according to its outcomes, which are added in order, oldest first.
type standing struct {
	// uid is that of the newest workload of the name, and before has those of earlier ones.
	uid    string
	before []string
	// held is the last outcome that says that the workload waits, and open has the sources of it that have had no other outcome since.
	held *events.Outcome
	open []string
}

// addNamed adds the next outcome of a workload of the name. What is known of an earlier one says nothing about one that was created again.
func (s *standing) addNamed(outcome events.Outcome) {
	switch uid := outcome.Workload.UID; {
	case slices.Contains(s.before, uid):
		return
	case uid != s.uid:
		*s = standing{uid: uid, before: append(s.before, s.uid)}
	}
	s.add(outcome)
}

// add adds the next outcome.
func (s *standing) add(outcome events.Outcome) {
	if outcome.Verb == events.VerbHeld {
		s.held, s.open = &outcome, sourcesOf(outcome)
		return
	}
	if s.held == nil || !outcome.StartedAt.IsZero() && outcome.StartedAt.Before(s.held.Time) {
		return // It may be about the end of an earlier rollout.
	}
	decided := sourcesOf(outcome)
	s.open = slices.DeleteFunc(s.open, func(source string) bool { return slices.Contains(decided, source) })
}

// waits reports whether the workload still waits according to its outcomes.
func (s *standing) waits() bool { return s.held != nil && len(s.open) > 0 }
