package actuate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// The reasons of outcomes that do not come from a decision.
const (
	reasonRolledOut        = "rolled-out"
	reasonDeadlineExceeded = "deadline-exceeded"
	reasonAborted          = "aborted"
	reasonTimedOut         = "timed-out"
	reasonBakeFailed       = "bake-failed"
	reasonSuperseded       = "superseded"
	reasonReverted         = "reverted"
	reasonUnwatched        = "unwatched"
)

// restoredMessage says that the rollout itself is gone, and not only its pod template.
const restoredMessage = "the workload is as it was before the rollout, as after a restore of etcd"

// failureReasons are those of a rollout that has failed.
var failureReasons = []string{reasonAborted, reasonBakeFailed, reasonDeadlineExceeded, reasonReverted, reasonTimedOut}

// ending is a rollout that has ended, and how.
type ending struct {
	rollout *rollout
	outcome events.Outcome
	// took is the time since it began.
	took time.Duration
}

// following follows rollouts to their end.
type following struct {
	tracer trace.Tracer
	index  *inventory.Index
	now    func() time.Time
	// kinds and namespaces are those whose workloads are in the index. If namespaces is empty, it has those of all that are not ignored.
	kinds               workload.Kinds
	namespaces, ignored []string
	// timeout is --rollout-timeout: how long a rollout may make no progress.
	timeout time.Duration
	// revertDelays are Options.RevertDelays.
	revertDelays [plan.RevertRetries]time.Duration

	rollouts map[workload.Key]*rollout
	// moved is called with each workload whose rollout begins or ends.
	moved func(workload.Key)
	// told has the revision of the last roll that was told of, for each workload that still exists.
	told map[workload.Key]string
}

func newFollowing(index *inventory.Index, kinds workload.Kinds, o Options) *following {
	return &following{
		index: index, kinds: kinds, namespaces: o.Namespaces, ignored: o.IgnoreNamespaces,
		timeout: o.RolloutTimeout, revertDelays: o.RevertDelays, tracer: o.Tracer, now: o.Now,
		rollouts: make(map[workload.Key]*rollout), told: make(map[workload.Key]string),
	}
}

// follows reports whether a rollout of the workload is in progress.
func (f *following) follows(key workload.Key) bool { return f.rollouts[key] != nil }

// has reports whether a rollout of the workload for a change of the source is in progress.
func (f *following) has(key workload.Key, source events.Source) bool {
	r := f.rollouts[key]
	return r != nil && slices.ContainsFunc(r.started.Sources, func(s events.OutcomeSource) bool { return s.Source == source.String() })
}

// isUnfinished is like has, but leaves out rollouts that wait for people or for a time, because these would hold up others for as long.
func (f *following) isUnfinished(key workload.Key, source events.Source) bool {
	return f.has(key, source) && !f.waits(key)
}

// waits reports whether the rollout of a workload, whoever started it, waits for people or for a time, or for its kind to be served.
func (f *following) waits(key workload.Key) bool {
	w := f.index.Get(key)
	return w != nil && (w.Unserved || w.Progress.Waits(f.now()))
}

// isAborted reports whether the rollout of a workload, whoever started it, was aborted and is held because of that.
func (f *following) isAborted(key workload.Key) bool {
	w := f.index.Get(key)
	return w != nil && w.Aborted
}

// replaces reports whether a rollout of the workload is followed that replaces pods. A rollout whose pods only have to stay ready does not count.
func (f *following) replaces(key workload.Key) bool {
	if !f.follows(key) {
		return false
	}
	w := f.index.Get(key)
	return w != nil && w.Progress.Pods > 0 && w.Progress.State != workload.Complete && !f.waits(key)
}

// begin follows the rollout that, according to an outcome, has begun, possibly by another actuator. Call supersede first if an earlier rollout of
// the workload is in progress.
func (f *following) begin(ctx context.Context, started events.Outcome) *rollout {
	key := workload.KeyOf(started.Workload)
	f.told[key] = started.Revision
	_, span := f.tracer.Start(started.Trace.Context(ctx), "rollout "+key.Kind, trace.WithTimestamp(started.StartedAt))
	if span.IsRecording() {
		span.SetAttributes(rolloutAttributes(started)...)
	}
	r := &rollout{started: started, span: span, moved: f.now()}
	if w := f.index.Get(key); w != nil {
		r.observe(w, r.moved)
		if w.Revision == started.Revision {
			r.rolled = w
		}
	}
	f.rollouts[key] = r
	f.moved(key)
	return r
}

// supersede ends the rollout that a new one of the same workload replaces, if one is in progress.
func (f *following) supersede(started events.Outcome) (ending, bool) {
	key := workload.KeyOf(started.Workload)
	if r := f.rollouts[key]; r != nil && r.started.Revision != started.Revision {
		return f.end(key, events.VerbSkipped, reasonSuperseded, "a later change started another rollout"), true
	}
	return ending{}, false
}

// watches reports whether the kind and the namespace of a workload are watched. An earlier actuator may have had other options.
func (f *following) watches(key workload.Key) bool {
	_, known := f.kinds.Named(key.Kind)
	return known && kube.Includes(f.namespaces, f.ignored, key.Namespace)
}

// review ends the rollout of a workload if its state says so. The state is nil if it is gone. Bake is how long its pods must stay ready.
func (f *following) review(key workload.Key, w *workload.Workload, bake time.Duration) (ending, bool) {
	if w == nil {
		delete(f.told, key)
	}
	r := f.rollouts[key]
	switch {
	case r == nil:
		return ending{}, false
	case w == nil && !f.watches(key):
		return f.end(key, events.VerbSkipped, reasonUnwatched, "the actuator no longer watches workloads of this kind or namespace"), true
	case w == nil || w.ID.UID != r.started.Workload.UID:
		return f.end(key, events.VerbSkipped, plan.WorkloadGone.String(), plan.WorkloadGone.Sentence()), true
	case r.isAheadOf(w) && workload.Newer(w.Version, r.started.ResourceVersion):
		return f.end(key, events.VerbSkipped, reasonSuperseded, restoredMessage), true
	case r.isAheadOf(w): // The list of a new leader may be behind.
		return ending{}, false
	case w.Revision != r.started.Revision:
		return f.replaced(key, w), true
	case w.Progress.State == workload.Complete && r.bakes(w, bake, f.now()):
		return ending{}, false
	case w.Progress.State == workload.Complete:
		return f.end(key, events.VerbCompleted, reasonRolledOut, w.Progress.Message), true
	case w.Progress.Aborted:
		return f.end(key, events.VerbFailed, reasonAborted, w.Progress.Message), true
	case w.Progress.State == workload.Failed:
		return f.end(key, events.VerbFailed, reasonDeadlineExceeded, w.Progress.Message), true
	case bake > 0 && r.lostPods(w):
		message := fmt.Sprintf("pods did not stay ready for %s, but for %s: %s", bake, f.now().Sub(r.ready).Round(time.Second), w.Progress.Message)
		return f.end(key, events.VerbFailed, reasonBakeFailed, message), true
	}
	r.observe(w, f.now())
	return ending{}, false
}

// replaced ends the rollout of a workload whose pod template has another revision.
func (f *following) replaced(key workload.Key, w *workload.Workload) ending {
	r := f.rollouts[key]
	switch w.Fate(workload.Seen{Before: r.rolled, Since: f.now().Add(-f.timeout)}) {
	case workload.RollReverted:
		return f.end(key, events.VerbFailed, reasonReverted, revertedMessage(w, r.started, f.revertDelays))
	case workload.RollUndone:
		return f.end(key, events.VerbSkipped, plan.Undone.String(), plan.Undone.Sentence())
	default:
		return f.end(key, events.VerbSkipped, reasonSuperseded, "the revision on the pod template was changed by someone else")
	}
}

// overdue ends the rollouts that make no progress, so that they do not keep their slots forever. While nobody knows whether they do, no time counts.
func (f *following) overdue() []ending {
	var ended []ending
	now := f.now()
	for key, r := range f.rollouts {
		w := f.index.Get(key)
		if w == nil || w.Unserved {
			r.moved = now
			continue
		}
		r.observe(w, now)
		switch {
		case now.Sub(r.moved) < f.timeout:
		case r.isAheadOf(w):
			ended = append(ended, f.end(key, events.VerbSkipped, reasonSuperseded, restoredMessage))
		default:
			message := fmt.Sprintf("no progress for %s: %s", f.timeout, w.Progress.Message)
			ended = append(ended, f.end(key, events.VerbFailed, reasonTimedOut, message))
		}
	}
	return ended
}

func (f *following) end(key workload.Key, verb events.Verb, reason, message string) ending {
	r, now := f.rollouts[key], f.now()
	delete(f.rollouts, key)
	f.moved(key)
	outcome := r.started
	outcome.Verb, outcome.Reason, outcome.Message, outcome.Time = verb, reason, message, now.UTC()
	if w := f.index.Get(key); w != nil && w.ID.UID == outcome.Workload.UID {
		outcome.ResourceVersion = w.Version
	}
	if r.span.IsRecording() {
		r.span.SetAttributes(outcomeAttributes(outcome)...)
	}
	if verb == events.VerbFailed {
		r.span.SetStatus(codes.Error, reason)
		r.span.SetAttributes(semconv.ErrorTypeKey.String(reason))
	}
	r.span.End(trace.WithTimestamp(now))
	return ending{rollout: r, outcome: outcome, took: r.rolledOut(now).Sub(r.started.StartedAt)}
}
