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

// reloaderMetrics have the names and labels of Reloader, for its dashboards. Rules in deploy/monitoring record others from Keyturn's own.
type reloaderMetrics struct {
	kinds       workload.Kinds
	reloads     metric.Int64Counter
	byNamespace metric.Int64UpDownCounter
	actions     metric.Int64Counter
}

func (m *reloaderMetrics) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		{
			Counter: &m.reloads, Name: "reloader.reload.executed", Labels: []string{"success"},
			About: "Patches that rolled a workload, and those that failed.",
		},
		{
			// The name of a counter cannot continue after its total, so this is an up-down counter.
			UpDown: &m.byNamespace, Name: "reloader.reload.executed.total.by.namespace", Labels: []string{"success", "namespace"},
			About: "The same, by the namespace of the workload.",
		},
		{Counter: &m.actions, Name: "reloader.action", Labels: []string{"workload_kind", "result"}, About: "The same, by the kind of the workload."},
	}
}

// ReloaderInstruments lists the instruments of --reloader metrics.
func ReloaderInstruments() []telemetry.Instrument { return new(reloaderMetrics).instruments() }

func newReloaderMetrics(meter metric.Meter, kinds workload.Kinds) (*reloaderMetrics, error) {
	m := &reloaderMetrics{kinds: kinds}
	if err := telemetry.MakeInstruments(meter, m.instruments()); err != nil {
		return nil, err
	}
	// As in Reloader, both exist from the start, so that a rate has a first value.
	for _, success := range []string{"true", "false"} {
		m.reloads.Add(context.Background(), 0, metric.WithAttributes(attribute.String("success", success)))
	}
	return m, nil
}

// count counts a patch that rolls, or failed. Success and result are Reloader's words for that.
func (m *reloaderMetrics) count(ctx context.Context, id events.Workload, success, result string) {
	succeeded := attribute.String("success", success)
	kind, _ := m.kinds.Named(id.Kind)
	m.reloads.Add(ctx, 1, metric.WithAttributes(succeeded))
	m.byNamespace.Add(ctx, 1, metric.WithAttributes(succeeded, attribute.String("namespace", id.Namespace)))
	m.actions.Add(ctx, 1, metric.WithAttributes(attribute.String("workload_kind", kind.Title), attribute.String("result", result)))
}

// tellAsReloader queues the Kubernetes Events of Reloader: one for each source of a roll, and one for a patch that is given up.
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
	// reloaderPause is how long Reloader must have rolled nothing to be finished. Its rolls are 0.2 seconds apart, their times known to the second.
	reloaderPause = 5 * time.Second
	// reloaderPatience is how long a change waits for that at most.
	reloaderPatience = time.Minute
	// reloaderMemory is how long a namespace counts as one of Reloader's after it has rolled something there.
	reloaderMemory = 10 * time.Minute
)

// reloaderRoll is when Reloader wrote a workload, to the second, and when that was seen, zero if that was before this term. Reloader goes first,
// because it does not recognize the rolls of others. Without --reloader, its rolls are not known, and nothing waits.
type reloaderRoll struct{ written, seen time.Time }

// reviewReloader looks at a workload that has changed or gone. If it is left to Reloader, Reloader may have rolled it.
func (a *admission) reviewReloader(key workload.Key) {
	_, isKnown := a.reloaders[key.Namespace]
	switch w := a.index.Get(key); {
	case w == nil && isKnown && !a.index.HasAny(key.Namespace): // HasAny may look at every workload: only if there is something to forget.
		delete(a.reloaders, key.Namespace)
	case w != nil && a.seeReloader(w, a.now()):
		a.reloaded = a.now()
	}
	a.debounce.releaseFrom(key, plan.ReloaderFirst)
}

// seeReloader reports whether Reloader has written a workload since the last one of its namespace. At is zero if that does not count as new.
func (a *admission) seeReloader(w *workload.Workload, at time.Time) bool {
	if !w.Reloaded.After(a.reloaders[w.ID.Namespace].written) {
		return false
	}
	a.reloaders[w.ID.Namespace] = reloaderRoll{w.Reloaded, at}
	return true
}

// reloaderEnd returns until when changes that wait since a time are left to Reloader, which works in one namespace after the other, and whether that
// is to come.
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
