package inspect

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// writtenAt returns when a change was written by the API server's clock, or when the watcher saw it if that is not known.
func writtenAt(change events.Change) time.Time {
	if !change.WrittenAt.IsZero() {
		return change.WrittenAt
	}
	return change.Time
}

// dates adds the times that are known from the last event of the source.
func (e *explanation) dates(change events.Change) {
	for _, at := range []*changeAt{e.Changed, e.Rolled} {
		switch {
		case at == nil || at.UID != change.UID:
		case at.ResourceVersion == change.ResourceVersion:
			at.Time = writtenAt(change)
		case change.Source.Kind == events.KindOpenBao:
			if nanoseconds, err := strconv.ParseInt(at.ResourceVersion, 10, 64); err == nil {
				at.Time = time.Unix(0, nanoseconds)
			}
		}
	}
}

// undated returns the changes of a source whose times are not known.
func (e *explanation) undated() []*changeAt {
	var list []*changeAt
	for _, at := range []*changeAt{e.Changed, e.Rolled} {
		if at != nil && at.Time.IsZero() {
			list = append(list, at)
		}
	}
	return list
}

// readDates adds the times of changes that are only in the history, as far as that reaches back. It reads nothing if all times are known, as when
// the workload was rolled for the last event.
func readDates(ctx context.Context, origins events.Origins, reader *events.Reader, source events.Source, e *explanation) error {
	undated := e.undated()
	if len(undated) == 0 {
		return nil
	}
	query := events.HistoryQuery{
		Clusters: []string{origins.Cluster}, Kind: source.Kind, Namespace: source.Namespace, Name: source.Name,
	}
	err := reader.History(ctx, query, func(stored events.Stored) error {
		change, unreadable := stored.Change()
		if unreadable != nil {
			return nil //nolint:nilerr // It is a dead letter, which has no time of a change.
		}
		for _, at := range undated {
			if at.UID == change.UID && at.ResourceVersion == change.ResourceVersion {
				at.Time = writtenAt(change)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the history of %s: %w", source, err)
	}
	return nil
}
