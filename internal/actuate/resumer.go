package actuate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// clockMargin is how far apart the clocks of the API server and of NATS may be.
const clockMargin = 10 * time.Second

// resumer reads from the stream what was in progress before this actuator became the leader.
type resumer struct {
	bus     *events.Bus
	origins events.Origins
	log     *slog.Logger
}

// outcomes calls take with the last outcome of each workload on the stream, and reports whether these are all.
func (r *resumer) outcomes(ctx context.Context, take func(events.Outcome)) bool {
	err := r.bus.State(ctx, []string{events.OutcomeFilter(r.origins.Cluster)}, func(stored events.Stored) error {
		outcome, err := events.ParseOutcome(stored.Event)
		if err != nil {
			r.log.WarnContext(ctx, "outcome on the stream not readable", "subject", stored.Subject, "err", err)
			return nil
		}
		take(outcome)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		// Rollouts are started and followed nevertheless; only the ends of earlier ones are not reported.
		r.log.ErrorContext(ctx, "reading the last outcomes failed", "err", err)
	}
	return err == nil
}

// began returns when the oldest event of the cluster was stored that the stream has, the zero time if it has none, or does not answer. Everything
// that was published since is there, or was superseded.
func (r *resumer) began(ctx context.Context) time.Time {
	at, err := r.bus.Oldest(ctx, append(events.SourceFilters(r.origins.Cluster), events.OutcomeFilter(r.origins.Cluster)))
	if err != nil && !errors.Is(err, events.ErrNotFound) && ctx.Err() == nil {
		r.log.WarnContext(ctx, "oldest event not readable; a rollout that nobody has reported may remain so", "err", err)
	}
	return at
}

// changed returns when the watcher saw the changes that a rollout is for, of those that the stream still has.
func (r *resumer) changed(ctx context.Context, started events.Outcome) []time.Time {
	var times []time.Time
	for _, cause := range started.Sources {
		source, err := events.ParseSource(cause.Source)
		if err != nil {
			continue
		}
		source = workload.SourceNamed(source.Kind, started.Workload.Namespace, source.Name)
		stored, err := r.origins.Last(ctx, &r.bus.Reader, source)
		if err != nil {
			continue // superseded by a deletion that has expired, or not answered: then it is not measured
		}
		if change, err := stored.Change(); err == nil && change.ID() == cause.Event {
			times = append(times, change.Time)
		}
	}
	return times
}
