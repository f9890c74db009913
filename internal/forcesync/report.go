package forcesync

import (
	"cmp"
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// Kind is the kind of an ExternalSecret in outcomes and spans, among the kinds of workloads. Spans also have those of ClusterExternalSecrets.
const Kind, clusterKind = "externalsecret", "clusterexternalsecret"

type reason string // how a sync ended; each externalsecret.Obstacle is one, too

const (
	done          reason = "synced"
	noChange      reason = "no-change"
	dryRun        reason = "dry-run"
	sourceDeleted reason = "source-deleted"
	targetMissing reason = "target-missing"
	gone          reason = "externalsecret-gone"
	refused       reason = "sync-error"
	timedOut      reason = "timed-out"
	neverTried    reason = "never-tried"
	denied        reason = events.ReasonPatchDenied
)

// The reasons for which an ExternalSecret was synced only after the lag of its store: another sync before might have rolled those who read it.
const (
	onceForEngine   reason = "synced-once-engine"
	onceForTemplate reason = "synced-once-template"
)

// The reasons of Kubernetes Events about ExternalSecrets.
const eventNotSynced, eventSyncFailed, eventSyncedLate = "NotSynced", "SyncFailed", "SyncedLate"

// verdict defines how a reason is reported. If event is empty, there is no Kubernetes Event. In the sentence, % stands for what has changed.
type verdict struct {
	verb            events.Verb
	event, sentence string
}

var verdicts = map[reason]verdict{
	done:          {events.VerbCompleted, "", "the ExternalSecret was synced"},
	noChange:      {events.VerbSkipped, "", "the ExternalSecret was synced, and what it writes did not change"},
	dryRun:        {events.VerbSkipped, "", "the ExternalSecret would be synced, but the actuator runs with --dry-run"},
	neverTried:    {events.VerbSkipped, "", "External Secrets Operator has not tried to sync the ExternalSecret yet, and reads % when it does"},
	sourceDeleted: {events.VerbSkipped, "", "% was deleted, which is not hurried: the next refresh does what deletionPolicy says"},
	targetMissing: {events.VerbSkipped, eventNotSynced, "% changed, but there is no Secret, and creationPolicy Merge creates none"},
	gone:          {events.VerbSkipped, "", "the ExternalSecret was deleted"},
	refused:       {events.VerbFailed, eventSyncFailed, "% changed, but External Secrets Operator cannot sync it"},
	timedOut:      {events.VerbFailed, eventSyncFailed, "% changed, but External Secrets Operator did not sync it in time"},
	denied:        {events.VerbFailed, eventSyncFailed, "% changed, but the API server denies the force-sync annotation"},

	onceForEngine: {
		events.VerbCompleted, eventSyncedLate, "the ExternalSecret was synced only after the lag of its store, because it reads an engine other " +
			"than KV, which may have other data at each sync; an ExternalSecret of its own for what is in KV is synced at once, too",
	},
	onceForTemplate: {
		events.VerbCompleted, eventSyncedLate, "the ExternalSecret was synced only after the lag of its store, because % in its template has " +
			"another result at each sync; with the result in the store instead, it is synced at once, too",
	},

	reason(externalsecret.CreatedOnce): {events.VerbSkipped, eventNotSynced, "% changed, but refreshPolicy CreatedOnce prevents another sync"},
	reason(externalsecret.NoInterval):  {events.VerbSkipped, eventNotSynced, "% changed, but refreshInterval 0 prevents another sync"},
	reason(externalsecret.Generates):   {events.VerbSkipped, eventNotSynced, "% changed, but a sync would also generate a new value"},
	reason(externalsecret.NoTarget):    {events.VerbSkipped, eventNotSynced, "% changed, but with creationPolicy None nothing is written"},
	reason(externalsecret.Immutable): {
		events.VerbSkipped, eventNotSynced, "% changed, but the Secret is immutable: it has to be deleted to be created with the new content",
	},
	reason(externalsecret.Owned): {
		events.VerbSkipped, eventNotSynced, "% changed, but something else owns the Secret, which the operator therefore does not write",
	},
}

// report reports the end of a sync, also as a span event and a log line.
func (y *Syncer) report(ctx context.Context, s *pendingSync, why reason) {
	verdict, now, change, source, event := verdicts[why], y.Now(), s.change, s.change.Source.String(), s.change.ID()
	what := "the secret in the store"
	switch {
	case s.isOfTemplate():
		what = "its template"
	case why == onceForTemplate:
		what = cmp.Or(s.seen.Unsteady, "a function")
	}
	outcome := events.Outcome{
		Cluster: y.Cluster, Verb: verdict.verb, Workload: identify(s.seen), ResourceVersion: s.seen.ResourceVersion, Time: now.UTC(),
		Cause: event, Trace: events.TraceFrom(s.context(ctx)), Reason: string(why), Message: strings.Replace(verdict.sentence, "%", what, 1),
		Sources: []events.OutcomeSource{{Source: source, Fingerprint: change.Fingerprint, ResourceVersion: change.ResourceVersion, Event: event}},
	}
	y.host.ReportSync(ctx, outcome, verdict.event, now.Sub(change.Time))
	s.process.AddEvent(outcome.Reason, trace.WithAttributes(append(identityAttributes(outcome.Workload),
		attribute.String("keyturn.outcome", string(outcome.Verb)), attribute.String("keyturn.reason", outcome.Reason))...))
	y.Log.InfoContext(s.context(ctx), "externalsecret sync finished", "externalsecret", s.seen.Name, "namespace", s.seen.Namespace,
		"source", source, "verb", string(outcome.Verb), "reason", outcome.Reason, "repeat", s.repeat)
}

func identify(es *externalsecret.ExternalSecret) events.Workload {
	return events.Workload{Kind: Kind, Namespace: es.Namespace, Name: es.Name, UID: string(es.UID)}
}

func identityAttributes(id events.Workload) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.K8SNamespaceName(id.Namespace),
		attribute.String("keyturn.workload.kind", id.Kind), attribute.String("keyturn."+id.Kind+".name", id.Name),
	}
}
