package actuate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/internal/workload"
)

// reloaderMetrics are metrics with Reloader's names and labels, for its dashboards. Rules in deploy/monitoring derive others from Keyturn's own.
type reloaderMetrics struct {
	kinds            workload.Kinds
	reloads, actions metric.Int64Counter
	byNamespace      metric.Int64UpDownCounter
}

func (m *reloaderMetrics) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Counter(&m.reloads, "reloader.reload.executed", "", "Patches that rolled a workload, and those that failed.", "success"),
		// The name of a counter cannot continue after "total", so this is an up-down counter.
		telemetry.UpDown(&m.byNamespace, "reloader.reload.executed.total.by.namespace", "",
			"The same, by the namespace of the workload.", "success", "namespace"),
		telemetry.Counter(&m.actions, "reloader.action", "", "The same, by the kind of the workload.", "workload_kind", "result"),
	}
}

// ReloaderInstruments lists the instruments of --reloader metrics.
func ReloaderInstruments() []telemetry.Instrument { return new(reloaderMetrics).instruments() }

func newReloaderMetrics(meter metric.Meter, kinds workload.Kinds) (*reloaderMetrics, error) {
	m := &reloaderMetrics{kinds: kinds}
	if err := telemetry.MakeInstruments(meter, m.instruments()); err != nil {
		return nil, err
	}
	// As in Reloader, both series exist from the start, so that a rate has a first value.
	for _, success := range []string{"true", "false"} {
		m.reloads.Add(context.Background(), 0, metric.WithAttributes(attribute.String("success", success)))
	}
	return m, nil
}

// count counts a patch that rolls, or a failed one. Success and result are Reloader's label values.
func (m *reloaderMetrics) count(ctx context.Context, id events.Workload, success, result string) {
	succeeded := attribute.String("success", success)
	kind, _ := m.kinds.Named(id.Kind)
	m.reloads.Add(ctx, 1, metric.WithAttributes(succeeded))
	m.byNamespace.Add(ctx, 1, metric.WithAttributes(succeeded, attribute.String("namespace", id.Namespace)))
	m.actions.Add(ctx, 1, metric.WithAttributes(attribute.String("workload_kind", kind.Title), attribute.String("result", result)))
}

// tellAsReloader queues the Kubernetes Events of Reloader: one for each source of a roll, and one for a failed patch.
func (k *kubeEvents) tellAsReloader(ctx context.Context, outcome events.Outcome) {
	w := outcome.Workload
	kind, ok := k.kinds.Named(w.Kind)
	if !ok {
		return
	}
	switch {
	case outcome.Verb == events.VerbStarted:
		for _, changed := range outcome.Sources {
			source, name, _ := strings.Cut(changed.Source, "/")
			message := fmt.Sprintf("Changes detected in '%s' of type '%s' in namespace '%s', Updated '%s' of type '%s' in namespace '%s'",
				name, strings.ToUpper(source), w.Namespace, w.Name, kind.Title, w.Namespace)
			k.write(ctx, w, kube.Event{Type: corev1.EventTypeNormal, Reason: "Reloaded", Message: message, Annotations: tracedBy(outcome)})
		}
	case outcome.Verb == events.VerbFailed && outcome.Reason == events.ReasonPatchDenied:
		message := fmt.Sprintf("Update for '%s' of type '%s' in namespace '%s' failed with error %s",
			w.Name, kind.Title, w.Namespace, outcome.Message)
		k.write(ctx, w, kube.Event{Type: corev1.EventTypeWarning, Reason: "ReloadFail", Message: message, Annotations: tracedBy(outcome)})
	}
}

const (
	// reloaderPause is the time without a roll after which Reloader counts as finished. Its rolls are 0.2 seconds apart, with times in whole seconds.
	reloaderPause = 5 * time.Second
	// reloaderPatience is how long a change waits for Reloader at most.
	reloaderPatience = time.Minute
	// reloaderMemory is how long Reloader counts as active in a namespace after its last roll there.
	reloaderMemory = 10 * time.Minute
)

// reloaderRoll is when Reloader wrote a workload, in whole seconds, and when this leader saw that, zero if before its term. Reloader goes first,
// because it does not recognize other rolls. Without --reloader, its rolls are unknown and nothing waits.
type reloaderRoll struct{ written, seen time.Time }

// reviewReloader checks a changed workload for a roll by Reloader.
func (a *admission) reviewReloader(key workload.Key) {
	_, isKnown := a.reloaders[key.Namespace]
	switch w := a.index.Get(key); {
	case w == nil && isKnown && !a.index.HasAny(key.Namespace): // HasAny is slow, so it comes last.
		delete(a.reloaders, key.Namespace)
	case w != nil && a.seeReloader(w, a.now()):
		a.reloaded = a.now()
	}
	a.debounce.releaseFrom(key, plan.ReloaderFirst)
}

// seeReloader reports whether Reloader has written a workload since its last known roll in the namespace. At is zero for rolls from before the term.
func (a *admission) seeReloader(w *workload.Workload, at time.Time) bool {
	if !w.Reloaded.After(a.reloaders[w.ID.Namespace].written) {
		return false
	}
	a.reloaders[w.ID.Namespace] = reloaderRoll{w.Reloaded, at}
	return true
}

// reloaderEnd returns until when changes that have waited since a given time leave a namespace to Reloader, which handles one namespace after the
// other, and whether that time is in the future.
func (a *admission) reloaderEnd(namespace string, since time.Time) (time.Time, bool) {
	now, seen := a.now(), a.reloaders[namespace].seen
	if seen.IsZero() || now.Sub(seen) > reloaderMemory {
		return time.Time{}, false
	}
	end := a.reloaded.Add(reloaderPause)
	if latest := since.Add(reloaderPatience); end.After(latest) {
		end = latest
	}
	return end, now.Before(end)
}
