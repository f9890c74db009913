package actuate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// dating collects when the changes of a source were written. An event that already has a change was written after it: the oldest such event
// of the history is the best bound.
type dating struct {
	uid string
	// undated are the resourceVersions of changes, the oldest first.
	undated []string
	written map[string]time.Time
}

func newDating(change events.Change) *dating {
	versions := []string{change.ChangedAt}
	for _, key := range change.Keys {
		versions = append(versions, key.ChangedAt)
	}
	versions = slices.DeleteFunc(versions, func(version string) bool { return version == "" })
	slices.SortFunc(versions, workload.CompareVersions)
	return &dating{uid: change.UID, undated: slices.Compact(versions), written: make(map[string]time.Time)}
}

// add takes an event of the history, and reports whether more are needed. Those of an earlier object of this name may be of another cluster.
func (d *dating) add(earlier events.Change) bool {
	if earlier.UID != d.uid || earlier.Verb == events.VerbDeleted || earlier.WrittenAt.IsZero() {
		return len(d.undated) > 0
	}
	for len(d.undated) > 0 && !workload.Newer(d.undated[0], earlier.ResourceVersion) {
		d.written[d.undated[0]] = earlier.WrittenAt
		d.undated = d.undated[1:]
	}
	return len(d.undated) > 0
}

// errDated ends the reading of the history early.
var errDated = errors.New("every change is dated")

// writtenBy reads the history of a source.
func writtenBy(ctx context.Context, history *events.Reader, change events.Change) (map[string]time.Time, error) {
	d := newDating(change)
	query := events.HistoryQuery{
		Clusters: []string{change.Cluster}, Kind: change.Source.Kind, Namespace: change.Source.Namespace, Name: change.Source.Name,
	}
	err := history.History(ctx, query, func(stored events.Stored) error {
		earlier, err := stored.Change()
		if err == nil && !d.add(earlier) {
			return errDated
		}
		return nil // what cannot be read dates nothing
	})
	if errors.Is(err, errDated) {
		err = nil
	}
	return d.written, err
}
