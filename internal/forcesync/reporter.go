package forcesync

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// reporter reports how syncs end: as outcomes, Kubernetes Events, metrics, span events and log lines.
type reporter struct {
	cluster  string
	now      func() time.Time
	log      *slog.Logger
	publish  func(events.Outcome)
	warn     func(ctx context.Context, outcome events.Outcome, reason, message string)
	finished func(ctx context.Context, reason string, took time.Duration)
}

func newReporter(host *Host) reporter {
	return reporter{
		cluster: host.Cluster, now: host.Now, log: host.Log, publish: host.Publish, warn: host.Warn, finished: host.Metrics.Finished,
	}
}

// report reports the end of a sync.
func (r *reporter) report(ctx context.Context, s *pendingSync, why reason) {
	newest, verdict, now := s.newest(), verdicts[why], r.now()
	spanCtx := newest.context(ctx)
	outcome := events.Outcome{
		Cluster: r.cluster, Verb: verdict.verb, Workload: identify(s.seen), ResourceVersion: s.seen.ResourceVersion,
		Time: now.UTC(), Cause: s.change.ID(), Trace: events.TraceFrom(spanCtx), Reason: why.String(), Message: why.sentence(),
		Sources: []events.OutcomeSource{{
			Source: s.change.Source.String(), Fingerprint: s.change.Fingerprint, ResourceVersion: s.change.ResourceVersion, Event: s.change.ID(),
		}},
	}
	r.publish(outcome)
	if verdict.event != "" {
		r.warn(ctx, outcome, verdict.event, why.String()+": "+why.sentence()+" ("+s.change.Source.String()+")")
	}
	r.finished(ctx, why.String(), now.Sub(s.change.Time))
	newest.span.AddEvent(why.String(), trace.WithAttributes(append(identityAttributes(outcome.Workload),
		attribute.String("keyturn.outcome", string(outcome.Verb)), attribute.String("keyturn.reason", outcome.Reason))...))
	r.log.InfoContext(spanCtx, "externalsecret sync finished", "externalsecret", s.seen.Name, "namespace", s.seen.Namespace,
		"source", s.change.Source.String(), "verb", string(verdict.verb), "reason", why.String(), "repeat", s.repeat)
}
