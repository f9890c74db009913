package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/fair"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// rollouts follows the rollouts in progress until they end, within the limits of the cluster and of each namespace.
type rollouts struct {
	*term
	followed map[workload.Key]*rollout
	// told contains the revision of the last reported roll of each existing workload.
	told map[workload.Key]string
	// slots are taken by the rollouts in progress. If nil, they are counted when the next slot is needed.
	slots    *fair.Slots
	problems map[workload.Key]problem
	resumed  time.Time
	// doubted contains the workloads that a failed patch may have rolled.
	doubted map[workload.Key]doubt
	shadows map[workload.Key]shadow
}

func newRollouts(t *term) *rollouts {
	return &rollouts{
		term: t, followed: make(map[workload.Key]*rollout), told: make(map[workload.Key]string), problems: make(map[workload.Key]problem),
		doubted: make(map[workload.Key]doubt), shadows: make(map[workload.Key]shadow),
	}
}

// follow begins to follow a rollout, given the outcome of its start. The workload must not have another rollout in progress.
func (o *rollouts) follow(ctx context.Context, started events.Outcome) *rollout {
	key := workload.KeyOf(started.Workload)
	o.told[key] = started.Revision
	_, span := o.options.Tracer.Start(started.Trace.Context(ctx), "rollout "+key.Kind, trace.WithTimestamp(started.StartedAt))
	if span.IsRecording() {
		var sources []string
		for _, source := range started.Sources {
			sources = append(sources, source.Source)
		}
		span.SetAttributes(append(workloadAttributes(started.Workload), attribute.String("keyturn.revision", started.Revision),
			attribute.StringSlice("keyturn.sources", sources))...)
	}
	r := &rollout{started: started, span: span, moved: o.now()}
	if w := o.index.Get(key); w != nil {
		r.observe(w, r.moved)
		if w.Revision == started.Revision {
			r.rolled = w
		}
	}
	o.followed[key] = r
	return r
}

// unfollow stops following the rollout of a workload, and returns it with the outcome of its end.
func (o *rollouts) unfollow(key workload.Key, verb events.Verb, reason, message string) (*rollout, events.Outcome) {
	r, now := o.followed[key], o.now()
	delete(o.followed, key)
	outcome := r.started
	outcome.Verb, outcome.Reason, outcome.Message, outcome.Time = verb, reason, message, now.UTC()
	if w := o.index.Get(key); w != nil && w.ID.UID == outcome.Workload.UID {
		outcome.ResourceVersion = w.Version
	}
	if r.span.IsRecording() {
		r.span.SetAttributes(attribute.String("keyturn.outcome", string(verb)), reasonKey.String(reason))
	}
	if verb == events.VerbFailed {
		r.span.SetStatus(codes.Error, reason)
		r.span.SetAttributes(semconv.ErrorTypeKey.String(reason))
	}
	r.span.End(trace.WithTimestamp(now))
	return r, outcome
}

// hasSlot reports whether a rollout of a workload replaces pods or is about to, and is not waiting for people, a time or its kind.
func (o *rollouts) hasSlot(key workload.Key) bool {
	if o.patcher.replaces(key) {
		return true
	}
	w := o.index.Get(key)
	return w != nil && o.followed[key] != nil && w.Progress.Pods > 0 && w.Progress.State != workload.Complete &&
		!w.Unserved && !w.Progress.Waits(o.now())
}

// full returns the reason why a namespace may not begin another rollout, or plan.None if it may. A limit of zero means no limit.
func (o *rollouts) full(namespace string) plan.Reason {
	if o.options.MaxRollouts == 0 {
		return plan.None // This avoids counting all rollouts in progress for each decision.
	}
	if o.slots == nil {
		o.countSlots()
	}
	if !o.slots.MayTake(namespace) {
		return plan.Limit
	}
	return plan.None
}

func (o *rollouts) countSlots() {
	o.slots = fair.NewSlots(o.options.MaxRollouts, len(o.options.Namespaces) == 1)
	for key := range o.followed {
		if o.hasSlot(key) {
			o.slots.Take(key.Namespace)
		}
	}
	for key := range o.patcher.underWay {
		if o.patcher.replaces(key) && o.followed[key] == nil {
			o.slots.Take(key.Namespace)
		}
	}
}

// rollout is a rollout in progress.
type rollout struct {
	started events.Outcome
	// own says that this actuator, not an earlier leader, has started it. isShown says that a Kubernetes Event has reported it as slow.
	own, isShown bool
	span         trace.Span
	// changed contains the times at which the watcher saw the changes that caused the rollout, where known.
	changed []time.Time
	// rolled is the workload after the patch, and before is its record before the patch. They are nil if unknown.
	rolled *workload.Workload
	before map[string]workload.RolledFor
	// moved is when it last made progress, waited or baked. furthest is the best progress of a generation, as crashing pods go back and forth.
	moved      time.Time
	furthest   workload.Progress
	generation int64
	// ready is since when the pods have been ready if they must stay ready, zero otherwise. tried is the workload at that time.
	ready time.Time
	tried *workload.Workload
}

func (r *rollout) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, r.span)
}

func (r *rollout) observe(w *workload.Workload, now time.Time) {
	p := w.Progress
	if r.isOther(w) {
		r.unready()
	}
	changed := w.Generation != r.generation || p.Pods != r.furthest.Pods
	bakes := !r.ready.IsZero() && p.State == workload.Complete
	if changed || p.Waits(now) || p.Done > r.furthest.Done || bakes {
		r.moved, r.furthest, r.generation = now, p, w.Generation
	}
}

// bakes records that all pods are ready, and reports whether they must stay ready for longer.
func (r *rollout) bakes(w *workload.Workload, bake time.Duration, now time.Time) bool {
	if bake == 0 {
		return false
	}
	if r.ready.IsZero() || r.isOther(w) {
		r.ready, r.tried = now, w
		r.span.AddEvent("bake", trace.WithTimestamp(now))
	}
	r.observe(w, now)
	return now.Sub(r.ready) < bake
}

// unready restarts the time for which pods must stay ready.
func (r *rollout) unready() { r.ready, r.tried = time.Time{}, nil }

// isOther reports whether another client has changed the pod template since the pods were ready, so that other pods must stay ready now.
func (r *rollout) isOther(w *workload.Workload) bool {
	return r.tried != nil && !r.tried.SameTemplate(w)
}

// lostPods reports whether pods that were ready are not ready any more, although nobody has changed the workload or its number of replicas.
func (r *rollout) lostPods(w *workload.Workload) bool {
	return !r.ready.IsZero() && w.Generation == r.generation && w.Progress.Pods == r.furthest.Pods &&
		w.Progress.State == workload.Progressing && w.Progress.Done < r.furthest.Done
}

// isAheadOf reports whether a state of the workload is older than the rollout.
func (r *rollout) isAheadOf(w *workload.Workload) bool {
	return w.Revision != r.started.Revision && w.Generation < r.started.Generation
}

// problem describes wrong annotations of a workload. An orphan has an unknown controller, which may revert a roll of the workload itself.
type problem struct {
	text     string
	isOrphan bool
}

// doubt is a roll that may have happened although its patch failed. It was decided at since or later, and is reported at due.
type doubt struct{ since, due time.Time }

// shadow says when to restore a workload that an earlier leader deleted and did not create again before it ended.
type shadow struct {
	due time.Time
	// tried is the UID of the shadow for which a restore was tried before.
	tried string
}
