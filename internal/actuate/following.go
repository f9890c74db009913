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

// rollouts follows the rollouts in progress to their ends, within the limits of the cluster and of each namespace.
type rollouts struct {
	*term
	followed map[workload.Key]*rollout
	// told has the revision of the last roll that was reported, for each workload that still exists.
	told map[workload.Key]string
	// slots are those of the rollouts in progress. They are counted when one is needed, if isCounted is false.
	slots     *fair.Slots
	isCounted bool
	problems  map[workload.Key]problem
	resumed   time.Time
	// doubted has the workloads that a patch may have rolled although it failed.
	doubted map[workload.Key]doubt
	shadows map[workload.Key]shadow
}

func newRollouts(t *term) *rollouts {
	return &rollouts{
		term: t, followed: make(map[workload.Key]*rollout), told: make(map[workload.Key]string), problems: make(map[workload.Key]problem),
		doubted: make(map[workload.Key]doubt), shadows: make(map[workload.Key]shadow),
	}
}

// follow follows the rollout that has begun according to an outcome. No other one of the workload may be in progress.
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

// unfollow no longer follows the rollout of a workload, and returns it with the outcome.
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

// hasSlot reports whether the rollout of a workload replaces pods, or soon will, and does not wait for people, a time, or its kind.
func (o *rollouts) hasSlot(key workload.Key) bool {
	if o.patcher.replaces(key) {
		return true
	}
	w := o.index.Get(key)
	return w != nil && o.followed[key] != nil && w.Progress.Pods > 0 && w.Progress.State != workload.Complete &&
		!w.Unserved && !w.Progress.Waits(o.now())
}

// full returns why a namespace may not begin a rollout, or plan.None if it may. A limit of zero is none.
func (o *rollouts) full(namespace string) plan.Reason {
	if o.options.MaxRollouts == 0 {
		return plan.None // All rollouts in progress would be counted for each decision.
	}
	if !o.isCounted {
		o.countSlots()
	}
	if !o.slots.MayTake(namespace) {
		return plan.Limit
	}
	return plan.None
}

func (o *rollouts) countSlots() {
	o.isCounted, o.slots = true, fair.NewSlots(o.options.MaxRollouts, len(o.options.Namespaces) == 1)
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
	// own says that this actuator has started it, and not an earlier one, and isShown that people are told of it because it is slow.
	own, isShown bool
	span         trace.Span
	// changed are the times at which the watcher saw the changes that it is for, as far as they are known.
	changed []time.Time
	// rolled is the workload as the patch left it, and before is its record from before the patch. They are nil if not known.
	rolled *workload.Workload
	before map[string]workload.RolledFor
	// moved is when it last made progress, waited or baked. furthest is the most progress of a generation: a pod that crashes repeats its own.
	moved      time.Time
	furthest   workload.Progress
	generation int64
	// ready is since when its pods have been ready, if they must stay so, and otherwise zero. tried is the workload at that time.
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

// bakes records a state in which all pods are ready, and reports whether they must stay ready for longer.
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

// unready forgets that pods were ready, so that they have to stay so anew.
func (r *rollout) unready() { r.ready, r.tried = time.Time{}, nil }

// isOther reports whether somebody has changed the pod template since pods were ready. Then those are not the pods that have to stay ready.
func (r *rollout) isOther(w *workload.Workload) bool {
	return r.tried != nil && !r.tried.SameTemplate(w)
}

// lostPods reports whether pods were ready and no longer are, although nobody has changed the workload or its number of replicas.
func (r *rollout) lostPods(w *workload.Workload) bool {
	return !r.ready.IsZero() && w.Generation == r.generation && w.Progress.Pods == r.furthest.Pods &&
		w.Progress.State == workload.Progressing && w.Progress.Done < r.furthest.Done
}

// isAheadOf reports whether a state is one from before the rollout.
func (r *rollout) isAheadOf(w *workload.Workload) bool {
	return w.Revision != r.started.Revision && w.Generation < r.started.Generation
}

// problem is what is wrong with the annotations of a workload. An orphan is rolled itself although its controller should be, which may put that back.
type problem struct {
	text     string
	isOrphan bool
}

// doubt is about a roll that may have been made although its patch failed. It was decided at since or later, and is reported from due on.
type doubt struct{ since, due time.Time }

// shadow says when to restore a workload that was deleted to be created again, by an actuator that ended before that.
type shadow struct {
	due time.Time
	// tried is the UID of the one with which that was tried already.
	tried string
}
