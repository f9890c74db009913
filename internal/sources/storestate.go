package sources

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/keyturn/keyturn/internal/events"
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

// newStoreState returns nil for an event whose resourceVersion is not a time.
func newStoreState(change events.Change) *storeState {
	nanoseconds, err := strconv.ParseInt(change.ResourceVersion, 10, 64)
	if err != nil {
		return nil
	}
	return &storeState{
		version: change.Store.Version, revision: strings.Clone(change.Store.Revision),
		at: time.Unix(0, nanoseconds), writtenAt: change.WrittenAt, seenAt: change.Time,
	}
}

// internStore returns a copy that shares the texts that are the same for most secrets of a store.
func internStore(state events.StoreState) *events.StoreState {
	intern := func(text string) string { return unique.Make(text).Value() }
	state.Engine, state.Operation, state.By = intern(state.Engine), intern(state.Operation), intern(state.By)
	state.Servers = slices.Clone(state.Servers)
	for i, server := range state.Servers {
		state.Servers[i] = intern(server)
	}
	return &state
}
