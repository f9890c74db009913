package actuate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// reportQueue is how many outcomes wait to be published at most. When as many wait, deciding waits too: nothing of what
	// happened is left untold, and events stay on the stream meanwhile.
	reportQueue = 4096
	// reportTimeout is how long one try to publish an outcome takes at most.
	reportTimeout = 5 * time.Second
	// reportRetry is the time between two tries.
	reportRetry = time.Second
)

// reporter tells what becomes of changes: to the stream, and to people as Kubernetes Events.
type reporter struct {
	options Options
	bus     *events.Bus
	log     *slog.Logger
	metrics *metrics
	kube    *kubeEvents
	queue   chan *events.Outcome
	// closing is closed when the program stops: then nothing waits for a place in the queue any more.
	closing <-chan struct{}
	// told are the problems of each workload that people were told of. It belongs to the engine's goroutine.
	told map[workloadKey]string
}

func newReporter(a *Actuator, kube *kubeEvents, closing <-chan struct{}) *reporter {
	return &reporter{
		options: a.options, bus: a.bus, log: a.log, metrics: a.metrics, kube: kube, closing: closing,
		queue: make(chan *events.Outcome, reportQueue), told: make(map[workloadKey]string),
	}
}

// run publishes until the queue is closed and empty, or the context is done.
func (r *reporter) run(ctx context.Context) {
	for {
		select {
		case outcome, ok := <-r.queue:
			if !ok {
				return
			}
			for retriable(r.publish(ctx, *outcome)) && ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-time.After(reportRetry):
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *reporter) publish(ctx context.Context, outcome events.Outcome) error {
	ctx, cancel := context.WithTimeout(outcome.Trace.Context(ctx), reportTimeout)
	defer cancel()
	err := r.bus.PublishOutcome(ctx, outcome)
	r.metrics.published(ctx, err)
	if err != nil {
		r.log.WarnContext(ctx, "an outcome could not be published", "workload", outcome.Workload.String(),
			"namespace", outcome.Workload.Namespace, "verb", string(outcome.Verb), "err", err)
	}
	return err
}

// retriable tells whether another try may succeed. An outcome that the bus refuses for what it is would only be in the way
// of the others.
func retriable(err error) bool {
	var reject *events.RejectError
	return err != nil && !errors.As(err, &reject)
}

// report has an outcome published soon.
func (r *reporter) report(ctx context.Context, outcome events.Outcome) {
	r.kube.tell(ctx, outcome)
	r.enqueue(ctx, outcome)
}

func (r *reporter) enqueue(ctx context.Context, outcome events.Outcome) {
	select {
	case r.queue <- &outcome:
		return
	default:
	}
	select {
	case r.queue <- &outcome:
	case <-r.closing:
		r.log.WarnContext(ctx, "an outcome is left untold", "workload", outcome.Workload.String(),
			"namespace", outcome.Workload.Namespace, "verb", string(outcome.Verb))
	}
}

// started publishes that a rollout has begun, before the event that it is for is acknowledged: so that after a crash
// between the two the event comes again, and the rollout is followed.
func (r *reporter) started(ctx context.Context, roll *roll, after *workload) events.Outcome {
	now := r.options.Now().UTC()
	newest := roll.causes[len(roll.causes)-1]
	outcome := events.Outcome{
		Cluster: r.options.Cluster, Verb: events.VerbStarted, Workload: after.id, ResourceVersion: after.version, Time: now,
		Cause: newest.change.ID(), Trace: events.TraceFrom(ctx),
		Revision: roll.revision, Generation: after.generation, StartedAt: now,
		Message: "rolled for " + roll.cause,
	}
	for _, decision := range roll.decisions {
		if decision.Reason.Action() == Roll {
			outcome.Reason = decision.Reason.String()
			outcome.Sources = append(outcome.Sources, outcomeSource(decision, roll.pending.claims[decision.Source].change))
		}
	}
	r.kube.tell(ctx, outcome)
	if retriable(r.publish(ctx, outcome)) {
		r.enqueue(ctx, outcome)
	}
	return outcome
}

func outcomeSource(decision Decision, change events.Change) events.OutcomeSource {
	return events.OutcomeSource{
		Source: decision.Source.String(), Fingerprint: decision.Record.Fingerprint, ResourceVersion: decision.Record.Version,
		Keys: decision.Keys, Event: change.ID(),
	}
}

// problems tells people what is wrong with the annotations of a workload, once for each wording.
func (r *reporter) problems(ctx context.Context, w *workload) {
	texts := make([]string, 0, len(w.problems))
	for _, problem := range w.problems {
		texts = append(texts, problem.Error())
	}
	text := strings.Join(texts, "; ")
	if r.told[w.key()] == text {
		return
	}
	if text == "" {
		delete(r.told, w.key())
		return
	}
	r.told[w.key()] = text
	r.log.WarnContext(ctx, "an annotation cannot be read", "workload", w.id.String(), "namespace", w.id.Namespace, "err", text)
	r.kube.problem(ctx, w.id, text)
}

// outcome makes an outcome of all that a workload has pending.
func (e *engine) outcome(ctx context.Context, verb events.Verb, w *workload, p *pending, reason Reason) events.Outcome {
	outcome := events.Outcome{
		Cluster: e.options.Cluster, Verb: verb, Workload: w.id, ResourceVersion: w.version, Time: e.options.Now().UTC(),
		Reason: reason.String(), Message: reason.Sentence(), Trace: events.TraceFrom(ctx),
	}
	newest := ""
	for _, c := range p.claims {
		decision := plan(w, c.change, c.from)
		outcome.Sources = append(outcome.Sources, outcomeSource(decision, c.change))
		if newest == "" || newer(c.change.ResourceVersion, newest) {
			newest, outcome.Cause = c.change.ResourceVersion, c.change.ID()
		}
	}
	slices.SortFunc(outcome.Sources, func(a, b events.OutcomeSource) int { return strings.Compare(a.Source, b.Source) })
	return outcome
}

// skipped makes the outcome of a change that does nothing to a workload.
func (e *engine) skipped(t *ticket, w *workload, decision Decision) events.Outcome {
	change := t.delivery.Change
	return events.Outcome{
		Cluster: e.options.Cluster, Verb: events.VerbSkipped, Workload: w.id, ResourceVersion: w.version, Time: e.options.Now().UTC(),
		Cause: change.ID(), Reason: decision.Reason.String(), Message: decision.Reason.Sentence(), Trace: events.TraceFrom(t.ctx),
		Sources: []events.OutcomeSource{outcomeSource(decision, change)},
	}
}
