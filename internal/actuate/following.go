package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// following has the rollouts in progress, from their beginning to their end: see endings.go.
type following struct {
	tracer   trace.Tracer
	index    *inventory.Index
	now      func() time.Time
	rollouts map[workload.Key]*rollout
	// moved is called with each workload whose rollout begins or ends.
	moved func(workload.Key)
	// told has the revision of the last roll that was told of, for each workload that still exists.
	told map[workload.Key]string
}

// follows reports whether a rollout of the workload is in progress.
func (f *following) follows(key workload.Key) bool { return f.rollouts[key] != nil }

// waits reports whether the rollout of a workload, whoever started it, waits for people or for a time, or for its kind to be served.
func (f *following) waits(key workload.Key) bool {
	w := f.index.Get(key)
	return w != nil && (w.Unserved || w.Progress.Waits(f.now()))
}

// replaces reports whether a rollout of the workload is followed that replaces pods. A rollout whose pods only have to stay ready does not count.
func (f *following) replaces(key workload.Key) bool {
	if !f.follows(key) {
		return false
	}
	w := f.index.Get(key)
	return w != nil && w.Progress.Pods > 0 && w.Progress.State != workload.Complete && !f.waits(key)
}

// begin follows the rollout that, according to an outcome, has begun, possibly by another actuator. No other one of the workload may be in progress.
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

// end ends the rollout of a workload, and returns it with the outcome.
func (f *following) end(key workload.Key, verb events.Verb, reason, message string) (*rollout, events.Outcome) {
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
	return r, outcome
}
