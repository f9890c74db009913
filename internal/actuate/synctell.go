package actuate

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// The kinds of what is asked to sync, as outcomes and spans call them among those of workloads.
const (
	kindExternalSecret        = "externalsecret"
	kindClusterExternalSecret = "clusterexternalsecret"
)

// workloadOfSync is an ExternalSecret as what an outcome is about.
func workloadOfSync(es *externalsecret.ExternalSecret) events.Workload {
	return events.Workload{Kind: kindExternalSecret, Namespace: es.Namespace, Name: es.Name, UID: string(es.UID)}
}

// say tells what became of an ExternalSecret.
func (y *syncer) say(ctx context.Context, s *forcedSync, reason syncReason) {
	t, verdict, now := s.newest(), syncVerdicts[reason], y.engine.options.Now()
	outcome := events.Outcome{
		Cluster: y.engine.options.Cluster, Verb: verdict.verb, Workload: workloadOfSync(s.seen), ResourceVersion: s.seen.ResourceVersion,
		Time: now.UTC(), Cause: s.change.ID(), Trace: events.TraceFrom(t.ctx), Reason: reason.String(), Message: reason.Sentence(),
		Sources: []events.OutcomeSource{{
			Source: s.change.Source.String(), Fingerprint: s.change.Fingerprint, ResourceVersion: s.change.ResourceVersion, Event: s.change.ID(),
		}},
	}
	y.engine.reporter.await(report{outcome: outcome})
	if verdict.event != "" {
		y.engine.reporter.kube.write(ctx, outcome.Workload, corev1.EventTypeWarning, verdict.event,
			reason.String()+": "+reason.Sentence()+" ("+s.change.Source.String()+")", tracedBy(outcome))
	}
	y.engine.metrics.synced(ctx, reason, now.Sub(s.change.Time))
	t.span.AddEvent(reason.String(), trace.WithAttributes(append(workloadAttributes(outcome.Workload), outcomeAttributes(outcome)...)...))
	y.engine.log.InfoContext(t.ctx, "an externalsecret is done with", "externalsecret", s.seen.Name, "namespace", s.seen.Namespace,
		"source", s.change.Source.String(), "verb", string(verdict.verb), "reason", reason.String(), "repeat", s.repeat)
}

// endSpan ends the span of the wait for a sync, where there is one.
func endSpan(s *forcedSync, reason string) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.String("keyturn.reason", reason))
	if reason != syncDone.String() {
		s.span.SetStatus(codes.Error, reason)
	}
	s.span.End()
	s.span = nil
}

func syncTargetAttributes(ask syncAsk) []attribute.KeyValue {
	id := workloadOfSync(ask.syncs[0].seen)
	if ask.target.isCluster() {
		id = events.Workload{Kind: kindClusterExternalSecret, Name: ask.target.name}
	}
	return append(workloadAttributes(id), attribute.Int("keyturn.externalsecrets", len(ask.syncs)))
}
