package sources

import (
	"strconv"
	"time"
)

// storeState is the state of a secret in a store according to the last event.
type storeState struct {
	version int64
	// revision is the last part of the event's id.
	revision string
	// at orders the events, and writtenAt is the store's time of the state.
	at, writtenAt time.Time
	// seenAt is when the watcher saw the state, by its clock, but no later than when this one read that, by its own.
	seenAt time.Time
}

// inStore returns the state of a secret in a store. It is nil if there is no event, or one whose resourceVersion is not a time.
func (l *lastEvent) inStore() *storeState {
	store := l.rare().Store
	if store == nil {
		return nil
	}
	nanoseconds, err := strconv.ParseInt(l.ResourceVersion, 10, 64)
	if err != nil {
		return nil
	}
	return &storeState{
		version: store.Version, revision: store.Revision, at: time.Unix(0, nanoseconds), writtenAt: l.WrittenAt(), seenAt: l.Time(),
	}
}
