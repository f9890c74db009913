package actuate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// reportQueue is how many outcomes wait to be published at most. When as many wait, deciding waits too: nothing of what
	// happened is left untold, and events stay on the stream meanwhile.
	reportQueue = 4096
	// reportPatience is how long an outcome waits at most while patches are under way: see
	// docs/adr/0008-patches-go-first.md.
	reportPatience = 5 * time.Second
	// reportBatch is how many outcomes are published at a time at most.
	reportBatch = 256
	// reportTimeout is how long one try to publish outcomes takes at most.
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

	// waiting are the outcomes that run was not given yet, the oldest first, and since is from when that one is. Like told,
	// they belong to the engine's goroutine.
	waiting []report
	since   time.Time
	// told are the problems of each workload that people were told of.
	told map[workload.Key]string

	// batches is what run is given, and published what it gives back. Nobody takes it any more when closing is closed.
	batches   chan []report
	published chan []report
	closing   chan struct{}
}

// report is an outcome. Where it says that a rollout has begun, roll is what began it: the events that it is for are not
// acknowledged before the outcome is published, so that after a crash they come again and the rollout is followed.
type report struct {
	outcome events.Outcome
	roll    *roll
}

func newReporter(a *Actuator, kube *kubeEvents) *reporter {
	return &reporter{
		options: a.options, bus: a.bus, log: a.log, metrics: a.metrics, kube: kube, told: make(map[workload.Key]string),
		batches: make(chan []report), published: make(chan []report), closing: make(chan struct{}),
	}
}

// run publishes until there are no batches any more, or the context is done.
func (r *reporter) run(ctx context.Context) {
	for {
		select {
		case reports, ok := <-r.batches:
			if !ok {
				return
			}
			for batch := range slices.Chunk(reports, reportBatch) {
				r.publish(ctx, batch)
			}
		case <-ctx.Done():
			return
		}
	}
}

// publish publishes reports, however often that has to be tried, until the context is done.
func (r *reporter) publish(ctx context.Context, reports []report) {
	for ctx.Err() == nil {
		published, left := r.try(ctx, reports)
		select {
		case r.published <- published:
		case <-r.closing:
		}
		if reports = left; len(reports) == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(reportRetry):
		}
	}
	r.leave(ctx, reports)
}

// leave says that outcomes will not be published by this actuator.
func (r *reporter) leave(ctx context.Context, reports []report) {
	if len(reports) > 0 {
		r.log.WarnContext(ctx, "outcomes are left untold", "outcomes", len(reports))
	}
}

// try publishes reports once, and tells those that are done with from those that another try may help. An outcome that the
// bus refuses for what it is would only be in the way of the others.
func (r *reporter) try(ctx context.Context, reports []report) (done, left []report) {
	outcomes := make([]events.Outcome, len(reports))
	for i := range reports {
		outcomes[i] = reports[i].outcome
	}
	bounded, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	var failure error
	for i, err := range r.bus.PublishOutcomes(bounded, outcomes...) {
		r.metrics.published(ctx, err)
		if retriable(err) {
			left, failure = append(left, reports[i]), err
			continue
		}
		done = append(done, reports[i])
		if err != nil {
			r.log.WarnContext(outcomes[i].Trace.Context(ctx), "an outcome is refused", "workload", outcomes[i].Workload.String(),
				"namespace", outcomes[i].Workload.Namespace, "verb", string(outcomes[i].Verb), "err", err)
		}
	}
	if failure != nil {
		r.log.WarnContext(ctx, "outcomes could not be published; they will be tried again", "outcomes", len(left), "err", failure)
	}
	return done, left
}

// retriable tells whether another try may succeed.
func retriable(err error) bool {
	var reject *events.RejectError
	return err != nil && !errors.As(err, &reject)
}

// report has an outcome published soon, and writes its Kubernetes Event.
func (r *reporter) report(ctx context.Context, outcome events.Outcome) {
	r.kube.tell(ctx, outcome)
	r.await(report{outcome: outcome})
}

// await has an outcome published soon.
func (r *reporter) await(one report) {
	if len(r.waiting) == 0 {
		r.since = r.options.Now()
	}
	r.waiting = append(r.waiting, one)
}

// due tells whether what waits is to be published now. It lets patches go first, but not for ever.
func (r *reporter) due(now time.Time, patching bool) bool {
	return len(r.waiting) > 0 && (!patching || r.full() || now.Sub(r.since) >= reportPatience)
}

// outlet is where what waits is to go now; nil, into which nothing goes, where it is to wait.
func (r *reporter) outlet(now time.Time, patching bool) chan<- []report {
	if !r.due(now, patching) {
		return nil
	}
	return r.batches
}

// full tells whether nothing may be decided before outcomes are published.
func (r *reporter) full() bool { return len(r.waiting) >= reportQueue }

// taken notes that run was given what waited.
func (r *reporter) taken() { r.waiting = nil }

// close has run end when it has published what it was given.
func (r *reporter) close(ctx context.Context) {
	r.leave(ctx, r.waiting)
	close(r.closing)
	close(r.batches)
}

// problems tells people what is wrong with the annotations of a workload, once for each wording.
func (r *reporter) problems(ctx context.Context, w *workload.Workload) {
	texts := make([]string, 0, len(w.Problems))
	for _, problem := range w.Problems {
		texts = append(texts, problem.Error())
	}
	text := strings.Join(texts, "; ")
	if r.told[w.Key()] == text {
		return
	}
	if text == "" {
		delete(r.told, w.Key())
		return
	}
	r.told[w.Key()] = text
	r.log.WarnContext(ctx, "an annotation cannot be read", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", text)
	r.kube.problem(ctx, w.ID, text)
}

// tellAll has everything published that is not, for as long as one try may take.
func (e *engine) tellAll(ctx context.Context) {
	timeout := time.After(reportTimeout)
	for len(e.reporter.waiting) > 0 || e.untold > 0 {
		select {
		case e.reporter.outlet(e.options.Now(), false) <- e.reporter.waiting:
			e.reporter.taken()
		case reports := <-e.reporter.published:
			e.told(ctx, reports)
		case <-timeout:
			return
		}
	}
}

// told takes what is published: the events of the rollouts among it are one workload nearer to being done.
func (e *engine) told(ctx context.Context, reports []report) {
	for _, one := range reports {
		if one.roll != nil {
			e.untold--
			e.releaseAll(ctx, one.roll)
		}
	}
}
