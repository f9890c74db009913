package actuate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// surroundings are what a loop uses and what outlives it: a loop lives for one term as the leader.
type surroundings struct {
	options   Options
	kinds     workload.Kinds
	bus       *events.Bus
	log       *slog.Logger
	metrics   *metrics
	inventory *inventory.Inventory
	dirty     *dirtySet
	state     *state
	syncIndex *forcesync.Index
	snapshots *atomic.Pointer[snapshot]
}

// newLoop assembles the parts of a loop, from the bottom up.
func newLoop(s surroundings, kube *kubeEvents) *loop {
	o, now, index, namespaces := s.options, s.options.Now, s.inventory.Index, s.inventory.Namespaces
	s.dirty.begin()
	debounce := newDebounce(o.Settle, o.SettleMax)
	patcher := newPatcher(o.clients(), index, namespaces, o)
	following := &following{
		tracer: o.Tracer, index: index, now: now, rollouts: make(map[workload.Key]*rollout), told: make(map[workload.Key]string),
	}
	peers := &failedPeers{keys: make(map[workload.Key]*failure), replaced: make(map[workload.Key]map[string]workload.RolledFor)}
	pace := &pace{peers: peers, following: following, now: now, rolls: make(map[workload.Key]pacedRoll)}
	if !o.Reloader {
		pace.shortest = 2 * o.Settle
	}
	outbox := &outbox{bus: s.bus, log: s.log, metrics: s.metrics, now: now, batches: make(chan []events.Outcome)}
	reporter := &reporter{
		outbox: outbox, kube: kube, outcomes: outcomes{cluster: o.Cluster, now: now}, metrics: s.metrics, log: s.log, now: now,
	}
	syncer := forcesync.New(syncHost(o, reporter), s.syncIndex)
	repetitions := &repetitions{delays: o.RevertDelays, debounce: debounce, now: now, due: make(map[workload.Key]time.Time)}
	denied := make(denials)
	decider := &decider{policy: o.Policy(), dryRun: o.DryRun, state: s.state, denied: denied, now: now}
	notes := &notes{
		reporter: reporter, dryRun: o.DryRun, after: o.SettleMax, kinds: s.kinds, index: index, patcher: patcher, debounce: debounce,
		following: following, peers: peers, decider: decider, repetitions: repetitions,
		reverted: make(map[workload.Key]*correction), marked: make(map[workload.Key]time.Time), paused: make(map[workload.Key]time.Time),
		records: records{turns: make(map[workload.Key]*recordTurn)},
	}
	slots := newSlots(o, following, patcher)
	orders := &orders{
		canary: o.Canary, index: index, namespaces: namespaces, debounce: debounce, decider: decider, patcher: patcher, following: following,
		peers: peers, slots: slots, now: now, byNamespace: make(map[string]*order), members: make(map[workload.Key]*member),
		moved: make(map[string]struct{}), looked: make(map[string]time.Time),
	}
	debounce.moved = orders.review
	rollouts := &rollouts{
		private: o.LeaderElect && o.PrivateStream, dryRun: o.DryRun, timeout: o.RolloutTimeout,
		kinds: s.kinds, namespaces: o.Namespaces, ignored: o.IgnoreNamespaces, index: index, state: s.state, following: following, peers: peers,
		orders: orders, notes: notes, denied: denied, patcher: patcher, debounce: debounce,
		problems: &problems{reporter: reporter, told: make(map[workload.Key]problem)},
		reporter: reporter, doubted: make(map[workload.Key]doubt), shadows: make(map[workload.Key]shadow),
	}
	admission := &admission{
		besideReloader: &besideReloader{index: index, debounce: debounce, now: now, by: make(map[string]reloaderRoll)},
		orders:         orders, slots: slots, pace: pace, debounce: debounce, patcher: patcher, delay: o.ReloadDelay, now: now,
	}
	intake := &intake{
		decider: decider, index: index, state: s.state, dirty: s.dirty, debounce: debounce, patcher: patcher, notes: notes,
		syncer: syncer, look: s.inventory.Look, repetitions: repetitions, tracer: o.Tracer, reporter: reporter, waiting: make(keySet),
	}
	return &loop{
		progress: o.Progress, now: now, dirty: s.dirty, snapshots: s.snapshots,
		state: s.state, stream: &resumer{bus: s.bus, clients: o.clients(), namespaces: o.Namespaces, index: index, log: s.log},
		index: index, admission: admission, intake: intake, debounce: debounce,
		patcher: patcher, rollouts: rollouts, notes: notes, syncer: syncer, outbox: outbox,
		dispatcher: &dispatcher{
			reporter: reporter, decider: decider, kinds: s.kinds, index: index, debounce: debounce, admission: admission,
			patcher: patcher, rollouts: rollouts, notes: notes, told: make(toldHolds), unrecorded: make(map[string]bool),
			tracer: o.Tracer,
		},
	}
}

// syncHost returns what the force-sync needs from the actuator.
func syncHost(options Options, reporter *reporter) forcesync.Host {
	return forcesync.Host{
		Cluster: options.Cluster, DryRun: options.DryRun, MaxSyncs: options.MaxSyncs, Alone: len(options.Namespaces) == 1,
		Client: options.Dynamic, Log: reporter.log, Tracer: options.Tracer, Now: options.Now,
		Report: reporter.reportSync, Active: reporter.metrics.syncing,
		PatchFailed: func(ctx context.Context) { reporter.metrics.patchFailed(ctx, forcesync.Kind) },
	}
}
