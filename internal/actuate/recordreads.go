package actuate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// recordTimeout bounds all reads for one record.
const recordTimeout = 10 * time.Second

// recordReads reads from the stream what is needed to complete a record.
type recordReads struct {
	// last returns the last event of a source. The error wraps events.ErrNotFound if there is none.
	last func(context.Context, events.Source) (*events.Delivery, error)
	// decided returns the sequence on the stream up to which every event is decided.
	decided func(context.Context) (uint64, error)
	// outcome returns the last outcome of a workload. The error wraps events.ErrNotFound if there is none.
	outcome func(context.Context, events.Workload) (events.Outcome, error)
	log     *slog.Logger
}

// recordable is what the stream says of the sources that a workload has no record of.
type recordable struct {
	workload workload.Key
	// changes are the last events of the sources, but for those that are not decided yet.
	changes []events.Change
	// last is the last outcome of the workload, empty if there is none.
	last events.Outcome
}

// read reads what is needed for the record of a workload. Without an answer there is nothing to record.
func (r *recordReads) read(ctx context.Context, w *workload.Workload) recordable {
	bounded, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	found := recordable{workload: w.Key()}
	var err error
	if found.changes, err = r.changes(bounded, w.Unrecorded()); err == nil && len(found.changes) > 0 {
		found.last, err = r.outcome(bounded, w.ID)
		if errors.Is(err, events.ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		r.log.DebugContext(ctx, "cannot read what to record; retrying later", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
		found.changes = nil
	}
	return found
}

// changes returns the last events of sources, but for those that are not decided or not readable.
func (r *recordReads) changes(ctx context.Context, sources []events.Source) ([]events.Change, error) {
	var last []*events.Delivery
	for _, source := range sources {
		delivery, err := r.last(ctx, source)
		if _, reject := errors.AsType[*events.RejectError](err); reject || errors.Is(err, events.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		last = append(last, delivery)
	}
	if len(last) == 0 {
		return nil, nil
	}
	// Read after the events: if the stream was made anew in between, they are later than what it has decided.
	decided, err := r.decided(ctx)
	if err != nil {
		return nil, err
	}
	var changes []events.Change
	for _, delivery := range last {
		if delivery.Seq <= decided {
			changes = append(changes, delivery.Change)
		}
	}
	return changes, nil
}

// entries returns what is to be recorded of a workload.
func (f *recordable) entries(w *workload.Workload) map[string]workload.RolledFor {
	entries := make(map[string]workload.RolledFor)
	for _, change := range f.changes {
		if record, ok := plan.Baseline(w, change); ok && !f.isDenied(change) {
			entries[change.Source.String()] = record
		}
	}
	return entries
}

// isDenied reports whether the API server has refused to have the workload rolled for a change. Its pods have other content then, and must
// roll if the change comes again.
func (f *recordable) isDenied(change events.Change) bool {
	return f.last.Verb == events.VerbFailed && f.last.Reason == events.ReasonPatchDenied &&
		slices.ContainsFunc(f.last.Sources, func(s events.OutcomeSource) bool {
			return s.Source == change.Source.String() && s.Event == change.ID()
		})
}
