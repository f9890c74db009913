package actuate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/order"
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

// term has what the parts of a loop share. Each of them embeds it.
type term struct {
	*surroundings
	now        func() time.Time
	index      *inventory.Index
	namespaces *inventory.Namespaces

	outbox    *outbox
	kube      *kubeEvents
	outcomes  outcomes
	decider   *decider
	debounce  *debounce
	patcher   *patcher
	following *following
	peers     *failedPeers
	orders    *orders
	slots     *slots
}

// newLoop assembles the parts of a loop, from the bottom up.
func newLoop(s *surroundings, kube *kubeEvents) *loop {
	s.dirty.begin()
	t := &term{
		surroundings: s, now: s.options.Now, index: s.inventory.Index, namespaces: s.inventory.Namespaces, kube: kube,
		outcomes: outcomes{cluster: s.options.Cluster, now: s.options.Now},
		peers:    &failedPeers{keys: make(map[workload.Key]*failure), replaced: make(map[workload.Key]map[string]workload.RolledFor)},
	}
	t.outbox = &outbox{term: t, batches: make(chan []events.Outcome)}
	t.decider = &decider{term: t, denied: make(denials)}
	t.debounce = newDebounce(t)
	t.patcher = newPatcher(t)
	t.following = &following{term: t, rollouts: make(map[workload.Key]*rollout), told: make(map[workload.Key]string)}
	t.slots = &slots{term: t}
	t.orders = &orders{
		term: t, byNamespace: make(map[string]*order.Order), members: make(map[workload.Key]*order.Member), moved: make(map[string]struct{}),
		looked: make(map[string]time.Time),
	}
	notes := &notes{
		term: t, repetitions: make(map[workload.Key]time.Time), reverted: make(map[workload.Key]*correction),
		marked: make(map[workload.Key]time.Time), paused: make(map[workload.Key]time.Time),
		records: records{turns: make(map[workload.Key]*recordTurn)},
	}
	rollouts := &rollouts{
		term: t, notes: notes, problems: make(map[workload.Key]problem),
		doubted: make(map[workload.Key]doubt), shadows: make(map[workload.Key]shadow),
	}
	admission := &admission{
		term: t, pace: &pace{term: t, rolls: make(map[workload.Key]pacedRoll)},
		besideReloader: &besideReloader{term: t, by: make(map[string]reloaderRoll)},
	}
	o := s.options
	syncer := forcesync.New(forcesync.Options{
		Cluster: o.Cluster, DryRun: o.DryRun, MaxSyncs: o.MaxSyncs, Alone: len(o.Namespaces) == 1,
		Client: o.Dynamic, Log: s.log, Tracer: o.Tracer, Now: o.Now,
	}, t, s.syncIndex)
	return &loop{
		term: t, admission: admission, rollouts: rollouts, notes: notes, syncer: syncer,
		intake: &intake{term: t, notes: notes, syncer: syncer, waiting: make(keySet)},
		dispatcher: &dispatcher{
			term: t, admission: admission, rollouts: rollouts, notes: notes, told: make(toldHolds), unrecorded: make(map[string]bool),
		},
	}
}

// CountSync implements forcesync.Host.
func (t *term) CountSync(ctx context.Context, change int64) { t.metrics.syncsNow.Add(ctx, change) }

// CountFailedSync implements forcesync.Host.
func (t *term) CountFailedSync(ctx context.Context) { t.metrics.patchFailed(ctx, forcesync.Kind) }
