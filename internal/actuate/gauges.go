package actuate

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/internal/workload"
)

// gauges are the instruments that are observed at each scrape.
type gauges struct {
	leader, dryRun, unconfined, workloads, behind, pending, owed, refused, held, oldest, active, failing, reverted metric.Int64ObservableGauge
}

func (g *gauges) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Gauge(&g.leader, "keyturn.leader", "{leader}", "1 if this actuator is the leader, 0 if it is on standby."),
		telemetry.Gauge(&g.dryRun, "keyturn.dry.run", "{actuator}", "1 if this actuator runs with --dry-run and patches nothing, 0 otherwise."),
		telemetry.Gauge(&g.unconfined, "keyturn.unconfined", "{actuator}",
			"1 if an admission policy that confines an account of this installation is missing or incomplete, 0 otherwise. "+
				"Reported only with leader election, after the first check."),
		telemetry.Gauge(&g.workloads, "keyturn.workloads", "{workload}", "Workloads in the index.", "kind"),
		telemetry.Gauge(&g.behind, "keyturn.sources.behind", "{source}",
			"Sources with an event that the leader has not handled yet. Reported by the leader only, like the next gauges."),
		telemetry.Gauge(&g.pending, "keyturn.workloads.pending", "{workload}", "Workloads with an undecided change, including held ones."),
		telemetry.Gauge(&g.owed, "keyturn.workloads.owed.oldest", "s",
			"The longest time that a workload has waited to be rolled without a user's choice to wait, 0 if none waits."),
		telemetry.Gauge(&g.refused, "keyturn.workloads.refused", "{workload}",
			"Workloads whose rolling patch the API server refuses. The patch is retried until it is accepted.", "kind"),
		telemetry.Gauge(&g.held, "keyturn.workloads.held", "{workload}", "Workloads that have to be rolled and are held.", "reason"),
		telemetry.Gauge(&g.oldest, "keyturn.workloads.held.oldest", "s",
			"Age of the oldest change that a held workload waits to be rolled for, 0 if there is none. "+
				"After a restart of the actuator, it is the age of the latest change of the source.", "reason"),
		telemetry.Gauge(&g.active, "keyturn.rollouts.active", "{rollout}", "Rollouts in progress.", "kind"),
		telemetry.Gauge(&g.failing, "keyturn.rollouts.failing", "{rollout}",
			"Workloads whose last rollout failed and that have not recovered.", "kind"),
		telemetry.Gauge(&g.reverted, "keyturn.workloads.reverted", "{workload}",
			"Workloads that are no longer rolled for a change because another client reverted each rollout.", "kind"),
	}
}

// snapshot contains the state of the loop as numbers for the gauges. The loop renews it every few seconds, so that a scrape does not block the loop.
type snapshot struct {
	behind, pending int
	owed            time.Duration
	// held and oldest are keyed by the name of the reason.
	held   map[string]int
	oldest map[string]time.Duration
	// refused, active, failing and reverted are keyed by kind.
	refused, active, failing, reverted map[string]int
}

func newSnapshot(t *term) *snapshot {
	now := t.now()
	s := &snapshot{
		behind: t.dirty.behind(), pending: len(t.debounce.byKey),
		held: make(map[string]int), oldest: make(map[string]time.Duration), refused: make(map[string]int),
		active: countByKind(t.rollouts.followed), failing: countByKind(t.peers.keys),
		reverted: t.index.Reverted(plan.RevertRetries),
	}
	for _, p := range t.debounce.byKey {
		if p.held != plan.None {
			name := p.held.String()
			s.held[name]++
			s.oldest[name] = max(s.oldest[name], p.age(now))
		}
		s.addOwed(p, now)
	}
	for _, r := range t.patcher.underWay {
		if r.pending != nil {
			s.addOwed(r.pending, now)
		}
	}
	return s
}

// addOwed counts a workload that is to be rolled. It is also called during a patch, as a refused patch is retried again and again.
func (s *snapshot) addOwed(p *pending, now time.Time) {
	if !p.owes() {
		return
	}
	s.owed = max(s.owed, p.owedFor(now))
	if p.refused {
		s.refused[p.key.Kind]++
	}
}

func countByKind[V any](keys map[workload.Key]V) map[string]int {
	count := make(map[string]int)
	for key := range keys {
		count[key.Kind]++
	}
	return count
}

// observe registers the gauges for the lifetime of the program.
func (a *Actuator) observe() error {
	g := &a.metrics.gauges
	_, err := a.options.Meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		dryRun := int64(0)
		if a.options.DryRun {
			dryRun = 1
		}
		observer.ObserveInt64(g.dryRun, dryRun)
		if missing := a.unconfined.Load(); missing != nil {
			observer.ObserveInt64(g.unconfined, int64(min(len(*missing), 1)))
		}
		known := a.inventory.Index.Count()
		for _, kind := range a.kinds {
			observer.ObserveInt64(g.workloads, int64(known[kind.Name]), metric.WithAttributes(attribute.String("kind", kind.Name)))
		}
		if !a.leading.Load() {
			observer.ObserveInt64(g.leader, 0)
			return nil
		}
		observer.ObserveInt64(g.leader, 1)
		if s := a.snapshots.Load(); s != nil {
			g.observeSnapshot(observer, a.kinds, s)
		}
		return nil
	}, g.leader, g.dryRun, g.unconfined, g.workloads, g.behind, g.pending, g.owed, g.refused, g.held, g.oldest, g.active, g.failing, g.reverted)
	if err != nil {
		return fmt.Errorf("registering gauges: %w", err)
	}
	return nil
}

// observeSnapshot reports every label value, including zeros, so that series never disappear.
func (g *gauges) observeSnapshot(observer metric.Observer, kinds workload.Kinds, s *snapshot) {
	observer.ObserveInt64(g.behind, int64(s.behind))
	observer.ObserveInt64(g.pending, int64(s.pending))
	observer.ObserveInt64(g.owed, int64(s.owed.Seconds()))
	for _, reason := range plan.Reasons() {
		if reason.Action() == plan.Hold {
			label := metric.WithAttributes(attribute.String("reason", reason.String()))
			observer.ObserveInt64(g.held, int64(s.held[reason.String()]), label)
			observer.ObserveInt64(g.oldest, int64(s.oldest[reason.String()].Seconds()), label)
		}
	}
	for _, kind := range kinds {
		label := metric.WithAttributes(attribute.String("kind", kind.Name))
		observer.ObserveInt64(g.refused, int64(s.refused[kind.Name]), label)
		observer.ObserveInt64(g.active, int64(s.active[kind.Name]), label)
		observer.ObserveInt64(g.failing, int64(s.failing[kind.Name]), label)
		observer.ObserveInt64(g.reverted, int64(s.reverted[kind.Name]), label)
	}
}
