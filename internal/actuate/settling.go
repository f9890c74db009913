package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// settling keeps events that seem to need no action until the workload has been quiet for the debounce window: one command may remove a key and
// change its reader a moment later. So the actuator decides about these events again, and reports only the second decision.
type settling struct {
	*term
	byKey map[workload.Key]*unsettled
	// due is when the first workload may be quiet, or earlier.
	due time.Time
}

// unsettled is a workload with events that seem to need no action.
type unsettled struct {
	// seen is the workload when the newest event arrived. The workload may have been deleted since.
	seen       *workload.Workload
	first, due time.Time
	events     map[events.Source]*takenEvent
}

func newSettling(t *term) *settling {
	return &settling{term: t, byKey: make(map[workload.Key]*unsettled)}
}

// keeps takes an event that seems to need no action, and reports whether it took it. It leaves events whose decision is not reported, and those that
// the loop took longer than the debounce window ago.
func (s *settling) keeps(e *takenEvent, w *workload.Workload, decision plan.Decision) bool {
	now, key, source := s.now(), w.Key(), e.change.Source
	if decision.Reason.Silent() || !now.Before(e.at.Add(s.options.Settle)) {
		return false
	}
	e.Hold()
	u := s.byKey[key]
	if u == nil {
		u = &unsettled{first: now, events: make(map[events.Source]*takenEvent)}
		s.byKey[key] = u
	} else if before := u.events[source]; before != nil {
		before.release()
	}
	u.seen, u.events[source], u.due = w, e, s.debounce.windowEnd(u.first, now)
	if len(s.byKey) == 1 || u.due.Before(s.due) {
		s.due = u.due
	}
	return true
}

// drop forgets the event of a source without an outcome, because a later event replaces it.
func (s *settling) drop(key workload.Key, source events.Source) {
	u := s.byKey[key]
	if u == nil || u.events[source] == nil {
		return
	}
	u.events[source].release()
	if delete(u.events, source); len(u.events) == 0 {
		delete(s.byKey, key)
	}
}

// next returns when a workload may be quiet, and false if there is none.
func (s *settling) next() (time.Time, bool) { return s.due, len(s.byKey) > 0 }

// take removes and returns the workloads that have been quiet. A workload with an open debounce window stays until its end.
func (s *settling) take() []*unsettled {
	now := s.now()
	if len(s.byKey) == 0 || now.Before(s.due) {
		return nil
	}
	var quiet []*unsettled
	s.due = now.Add(s.options.settleMax())
	for key, u := range s.byKey {
		if p := s.debounce.byKey[key]; p.isGathered() && p.due.After(u.due) {
			u.due = p.due
		}
		if now.Before(u.due) {
			if u.due.Before(s.due) {
				s.due = u.due
			}
			continue
		}
		delete(s.byKey, key)
		quiet = append(quiet, u)
	}
	return quiet
}

// abandon ends the spans of the remaining events. The next leader compares the sources with the records instead.
func (s *settling) abandon() {
	for _, u := range s.byKey {
		for _, e := range u.events {
			e.span.End()
		}
	}
}
