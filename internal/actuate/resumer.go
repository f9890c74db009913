package actuate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
)

// clockMargin is how far apart the clocks of the API server and of NATS may be.
const clockMargin = 10 * time.Second

// resumer reads from the stream what was in progress before this actuator became the leader.
type resumer struct {
	bus     *events.Bus
	cluster string
	log     *slog.Logger
}

// outcomes calls take with the last outcome of each workload on the stream, as far as it concerns this actuator. It tries until it has all of them,
// and returns false if the context ended first: without them, workloads might roll to content with which others have failed, and rollouts would be
// followed by nobody.
func (r *resumer) outcomes(ctx context.Context, concerns func(events.Outcome) bool, take func(events.Outcome)) bool {
	delays := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 10, Cap: 2 * time.Second}
	for {
		outcomes, err := r.read(ctx, concerns)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			for _, outcome := range outcomes {
				take(outcome)
			}
			return true
		}
		delay := delays.Step()
		r.log.WarnContext(ctx, "last outcomes not readable; reading them again", "retry_in", delay, "err", err)
		if !backoff.Sleep(ctx, delay) {
			return false
		}
	}
}

// read reads the last outcomes, as far as they are readable and concern this actuator.
func (r *resumer) read(ctx context.Context, concerns func(events.Outcome) bool) ([]events.Outcome, error) {
	if err := r.bus.Answers(ctx); err != nil {
		return nil, err
	}
	var outcomes []events.Outcome
	err := r.bus.State(ctx, []string{events.OutcomeFilter(r.cluster)}, func(stored events.Stored) error {
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
	at, err := r.bus.Oldest(ctx, append(events.SourceFilters(r.cluster), events.OutcomeFilter(r.cluster)))
	if err != nil && !errors.Is(err, events.ErrNotFound) && ctx.Err() == nil {
		r.log.WarnContext(ctx, "oldest event not readable; a rollout that nobody has reported may remain so", "err", err)
	}
	return at
}
