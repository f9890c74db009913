package actuate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// clockMargin is how far apart the clocks of the API server and of NATS may be.
	clockMargin = 10 * time.Second
	// resumePatience bounds how long a new leader waits for the last outcomes. Several servers elect a leader in seconds.
	resumePatience = time.Minute
	// changedPatience bounds how long it waits for the times of the changes that rollouts are for, which only metrics need.
	changedPatience = 5 * time.Second
)

// resumer reads from the stream what was in progress before this actuator became the leader.
type resumer struct {
	bus     *events.Bus
	origins events.Origins
	log     *slog.Logger
}

// outcomes calls take with the last outcome of each workload on the stream, as far as it concerns this actuator, and reports whether these are all.
func (r *resumer) outcomes(ctx context.Context, concerns func(events.Outcome) bool, take func(events.Outcome)) bool {
	outcomes, err := r.patiently(ctx, concerns)
	for _, outcome := range outcomes {
		take(outcome)
	}
	if err != nil && ctx.Err() == nil {
		// Rollouts are started and followed nevertheless; only the ends of earlier ones are not reported.
		r.log.ErrorContext(ctx, "reading the last outcomes failed", "err", err)
	}
	return err == nil
}

// patiently reads the last outcomes, and tries again while nobody answers: while this actuator takes over, the servers of the stream may be electing
// a leader, too. Nothing can be done before that.
func (r *resumer) patiently(ctx context.Context, concerns func(events.Outcome) bool) ([]events.Outcome, error) {
	bounded, cancel := context.WithTimeout(ctx, resumePatience)
	defer cancel()
	delays := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 10, Cap: 2 * time.Second}
	for {
		outcomes, err := r.read(bounded, concerns)
		if err == nil || bounded.Err() != nil || !events.IsSilence(err) {
			return outcomes, err
		}
		delay := delays.Step()
		r.log.WarnContext(ctx, "last outcomes not readable; reading them again", "retry_in", delay, "err", err)
		backoff.Sleep(bounded, delay)
	}
}

// read reads the last outcomes, as far as they are readable and concern this actuator.
func (r *resumer) read(ctx context.Context, concerns func(events.Outcome) bool) ([]events.Outcome, error) {
	if err := r.bus.Answers(ctx); err != nil {
		return nil, err
	}
	var outcomes []events.Outcome
	err := r.bus.State(ctx, []string{events.OutcomeFilter(r.origins.Cluster)}, func(stored events.Stored) error {
		outcome, err := events.ParseOutcome(stored.Event)
		if err != nil {
			r.log.WarnContext(ctx, "outcome on the stream not readable", "subject", stored.Subject, "err", err)
			return nil
		}
		if concerns(outcome) {
			outcomes = append(outcomes, outcome)
		}
		return nil
	})
	return outcomes, err
}

// began returns when the oldest of the cluster's events on the stream was stored, the zero time if there is none, or the stream does not answer.
// Everything that was published since is there, or was superseded.
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
