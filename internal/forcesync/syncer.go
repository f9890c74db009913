// Package forcesync makes External Secrets Operator read a secret again as soon as it changes in OpenBao or Vault.
//
// An event requests a sync of each ExternalSecret that reads the secret in the store, or whose template names the Secret or ConfigMap. A sync patches
// the force-sync annotation, waits until the operator has synced, and then until the written object has changed; otherwise, it is repeated. The
// annotation is derived only from the event, so a new leader recognizes an earlier request. A Syncer runs on the goroutine of its host, which has the
// only timer: see Syncer.Next. Other goroutines only write to the Index.
package forcesync

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/fair"
)

// Options configures a Syncer. Every field except DryRun and Alone is required.
type Options struct {
	Cluster  string
	DryRun   bool // report the syncs, but patch nothing
	MaxSyncs int  // how many ExternalSecrets may be patched and not synced yet
	Alone    bool // only one namespace is watched, which then gets all of MaxSyncs; otherwise, each gets at most half of the free slots
	Client   dynamic.Interface
	Log      *slog.Logger
	Tracer   trace.Tracer
	Now      func() time.Time
}

// Host is the program that runs a Syncer.
type Host interface {
	// ReportSync reports an outcome, and how long ago the watcher saw its change. A warning that is not empty is the reason of a Kubernetes Event.
	ReportSync(ctx context.Context, outcome events.Outcome, warning string, took time.Duration)
	CountSync(ctx context.Context, change int64) // 1 if an ExternalSecret takes a slot, -1 if it returns it
	CountFailedSync(ctx context.Context)         // a failed patch that will be retried
}

// Syncer syncs ExternalSecrets when the secret that they read in a store, or a Secret or ConfigMap in their template, changes.
type Syncer struct {
	Options
	host      Host
	index     *Index
	addresses map[string]bool                                         // logged addresses, with their stores
	pending   map[types.NamespacedName]map[events.Source]*pendingSync // unfinished syncs
	turns     *fair.Turns[*pendingSync]                               // by source, and then by namespace, because anyone may read a source
	last      *fair.Turns[*pendingSync]                               // never synced, after turns: their authors may have no right to the sources
	slots     *fair.Slots                                             // of ExternalSecrets that are patched and not synced yet
	lastTook  time.Duration                                           // duration of the last sync by the operator; zero before the first
	due       time.Time                                               // when the first state may end; zero if none does
	sending   sync.WaitGroup                                          // of patches
	answers   chan *patch                                             // with room for a response for each slot
}

// New returns a Syncer. Only one Syncer may use an Index at a time.
func New(options Options, host Host, index *Index) *Syncer {
	path := func(s *pendingSync) []string { return []string{s.change.Source.String(), s.seen.Namespace} }
	return &Syncer{
		Options: options, host: host, index: index, addresses: make(map[string]bool), answers: make(chan *patch, options.MaxSyncs),
		turns: fair.NewTurns(path), last: fair.NewTurns(path), slots: fair.NewSlots(options.MaxSyncs, options.Alone),
		pending: make(map[types.NamespacedName]map[events.Source]*pendingSync),
	}
}

// enqueue makes a sync wait for its turn, regardless of its state.
func (y *Syncer) enqueue(ctx context.Context, s *pendingSync) {
	y.returnSlot(ctx, s)
	s.endWait("superseded")
	s.state, s.due = queued, time.Time{}
	queue := y.turns
	if s.seen.SyncedVersion == "" {
		queue = y.last
	}
	queue.Push(s)
}

// await puts a sync into a state that ends at the given time, if not earlier.
func (y *Syncer) await(s *pendingSync, in state, until time.Time) {
	s.state, s.due = in, until
	if y.due.IsZero() || until.Before(y.due) {
		y.due = until
	}
}

// finish ends a sync, reports the reason, and releases its event. A non-nil err is why the sync was given up.
func (y *Syncer) finish(ctx context.Context, s *pendingSync, why reason, err error) {
	if why == done && s.seen.LacksTarget() {
		why = targetMissing // The operator has read the secret but had no Secret to write to.
	}
	name := nameOf(s.seen)
	if delete(y.pending[name], s.change.Source); len(y.pending[name]) == 0 {
		delete(y.pending, name)
	}
	y.returnSlot(ctx, s)
	s.endWait(string(why))
	if why == done && s.once != "" {
		why = s.once
	}
	y.report(ctx, s, why)
	s.event.Release(err)
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

// takeSlot counts a sync against MaxSyncs, which the syncs of one ClusterExternalSecret may exceed together.
func (y *Syncer) takeSlot(ctx context.Context, s *pendingSync) {
	s.hasSlot = true
	y.slots.Take(s.seen.Namespace)
	y.host.CountSync(s.context(ctx), 1)
}

func (y *Syncer) returnSlot(ctx context.Context, s *pendingSync) {
	if s.hasSlot {
		s.hasSlot = false
		y.slots.Return(s.seen.Namespace)
		y.host.CountSync(s.context(ctx), -1)
	}
}

// each calls a function for every pending sync. The function may finish the sync.
func (y *Syncer) each(do func(s *pendingSync)) {
	for _, all := range y.pending {
		for _, s := range all {
			do(s)
		}
	}
}

// Kind is the kind of an ExternalSecret in outcomes and spans, among the kinds of workloads. Spans also have those of ClusterExternalSecrets.
const Kind, clusterKind = "externalsecret", "clusterexternalsecret"

func identify(es *externalsecret.ExternalSecret) events.Workload {
	return events.Workload{Kind: Kind, Namespace: es.Namespace, Name: es.Name, UID: string(es.UID)}
}

func identityAttributes(id events.Workload) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.K8SNamespaceName(id.Namespace),
		attribute.String("keyturn.workload.kind", id.Kind), attribute.String("keyturn."+id.Kind+".name", id.Name),
	}
}
