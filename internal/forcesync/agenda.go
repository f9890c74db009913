package forcesync

import (
	"slices"
	"time"
)

// agenda has the syncs that are due at a certain time, the earliest first. Nearly all of them are added at its end and removed from its
// beginning.
type agenda []*pendingSync

// schedule puts a sync on the agenda, or moves it to another time.
func (a *agenda) schedule(s *pendingSync, at time.Time) {
	a.remove(s)
	s.due = at
	i, _ := slices.BinarySearchFunc(*a, s, earlier)
	*a = slices.Insert(*a, i, s)
}

// remove takes a sync off the agenda, if it is there.
func (a *agenda) remove(s *pendingSync) {
	if s.due.IsZero() {
		return
	}
	if i, ok := slices.BinarySearchFunc(*a, s, earlier); ok {
		*a = slices.Delete(*a, i, i+1)
	}
	s.due = time.Time{}
}

// next returns when the first sync is due, and false if there is none.
func (a *agenda) next() (time.Time, bool) {
	if len(*a) == 0 {
		return time.Time{}, false
	}
	return (*a)[0].due, true
}

// pop removes and returns a sync that is due, or nil if none is.
func (a *agenda) pop(now time.Time) *pendingSync {
	if due, ok := a.next(); !ok || now.Before(due) {
		return nil
	}
	s := (*a)[0]
	a.remove(s)
	return s
}

func earlier(a, b *pendingSync) int {
	if order := a.due.Compare(b.due); order != 0 {
		return order
	}
	return a.key.compare(b.key)
}
