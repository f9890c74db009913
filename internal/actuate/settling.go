package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// settling keeps the events by which workloads seem to need nothing, until each workload has been quiet for the debounce window. One command may
// remove a key and change its reader a moment later. So the actuator decides about these events once more, and reports the second decision alone.
type settling struct {
	*term
	byKey map[workload.Key]*unsettled
	// due is when the first of them may be quiet, or earlier.
	due time.Time
}

// unsettled is a workload that seems to need nothing, and the events that say so.
type unsettled struct {
	// seen is the workload as it was when the newest event came. It may be gone since.
	seen       *workload.Workload
	first, due time.Time
	events     map[events.Source]*takenEvent
}

func newSettling(t *term) *settling {
	return &settling{term: t, byKey: make(map[workload.Key]*unsettled)}
}

// keeps takes an event by which a workload seems to need nothing, and reports whether it took it. It leaves an event whose decision is not reported,
// and one that came longer than the debounce window ago.
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

// drop forgets the event of a source without an outcome, because there is a later event.
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

// take returns the workloads that have been quiet, and forgets them. While one is gathered, it waits for the end of that.
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

// abandon ends the spans of the events that are left. The next leader compares the sources with the records instead.
func (s *settling) abandon() {
	for _, u := range s.byKey {
		for _, e := range u.events {
			e.span.End()
		}
	}
}
