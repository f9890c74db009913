package actuate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// recordTimeout bounds all reads for one record.
const recordTimeout = 10 * time.Second

// recordReads reads from the stream what is needed to complete a record.
type recordReads struct {
	// last returns the last event of a source. The error wraps events.ErrNotFound if there is none.
	last func(context.Context, events.Source) (*events.Delivery, error)
	// lag returns which events are delivered and acked.
	lag func(context.Context) (events.Lag, error)
	// outcome returns the last outcome of a workload. The error wraps events.ErrNotFound if there is none.
	outcome func(context.Context, events.Workload) (events.Outcome, error)
	log     *slog.Logger
}

// recordable is what the stream has about the sources for which a workload has no record.
type recordable struct {
	workload workload.Key
	// last are the last events of the sources, absent are the sources without one, and lag says which events were delivered and acked then, if
	// last are any.
	last   []*events.Delivery
	absent []events.Source
	lag    events.Lag
	// outcome is the last one of the workload, empty if there is none.
	outcome events.Outcome
}

// read reads what is needed for the record of a workload. Without an answer there is nothing to record.
func (r *recordReads) read(ctx context.Context, w *workload.Workload) recordable {
	bounded, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	found := recordable{workload: w.Key()}
	err := r.events(bounded, w.Unrecorded(), &found)
	if err == nil && len(found.last) > 0 {
		found.outcome, err = r.outcome(bounded, w.ID)
		if reject, ok := errors.AsType[*events.RejectError](err); ok {
			r.log.WarnContext(ctx, "last outcome not readable, recording without it", "workload", w.ID.String(), "namespace", w.ID.Namespace,
				"err", reject)
			err = nil
		}
		if errors.Is(err, events.ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		r.log.DebugContext(ctx, "cannot read what to record; retrying later", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
		found.last, found.absent = nil, nil
	}
	return found
}

// events finds the last events of sources, except those that are not readable, and what of the stream is acked.
func (r *recordReads) events(ctx context.Context, sources []events.Source, found *recordable) (err error) {
	for _, source := range sources {
		delivery, err := r.last(ctx, source)
		_, reject := errors.AsType[*events.RejectError](err)
		switch {
		case reject:
		case errors.Is(err, events.ErrNotFound):
			found.absent = append(found.absent, source)
		case err != nil:
			return err
		default:
			found.last = append(found.last, delivery)
		}
	}
	if len(found.last) == 0 {
		return nil
	}
	// Read after the events: if the stream was recreated in between, they are later than what it has acked.
	found.lag, err = r.lag(ctx)
	return err
}

// isRefused reports whether the last outcome says that the API server has refused the roll of the workload for a change, or that someone reverted
// the roll. Then its pods have other content, and must roll if the change comes again.
func (f *recordable) isRefused(change events.Change) bool {
	return (f.outcome.Reason == events.ReasonPatchDenied || f.outcome.Reason == reasonReverted) &&
		slices.ContainsFunc(f.outcome.Sources, func(s events.OutcomeSource) bool {
			return s.Source == change.Source.String() && s.Event == change.ID()
		})
}
