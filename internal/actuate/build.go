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

// surroundings outlive a loop, which lives for one term as the leader.
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

// term has what the parts of a loop share, and the parts, which embed it. Each changes its own state alone.
type term struct {
	*surroundings
	now        func() time.Time
	index      *inventory.Index
	namespaces *inventory.Namespaces
	kube       *kubeEvents
	outcomes   outcomes
	denials    denials
	peers      *failedPeers

	outbox    *outbox
	debounce  *debounce
	patcher   *patcher
	orders    *orders
	admission *admission
	rollouts  *rollouts
	notes     *notes
}

// newLoop assembles the parts of a loop.
func newLoop(s *surroundings, kube *kubeEvents) *loop {
	s.dirty.begin()
	t := &term{
		surroundings: s, now: s.options.Now, index: s.inventory.Index, namespaces: s.inventory.Namespaces, kube: kube,
		outcomes: outcomes{cluster: s.options.Cluster, now: s.options.Now}, denials: make(denials), peers: newFailedPeers(),
	}
	t.outbox = &outbox{term: t, batches: make(chan []events.Outcome)}
	t.debounce, t.patcher, t.orders = newDebounce(t), newPatcher(t), newOrders(t)
	t.admission, t.rollouts, t.notes = newAdmission(t), newRollouts(t), newNotes(t)
	o := s.options
	syncer := forcesync.New(forcesync.Options{
		Cluster: o.Cluster, DryRun: o.DryRun, MaxSyncs: o.MaxSyncs, Alone: len(o.Namespaces) == 1,
		Client: o.Dynamic, Log: s.log, Tracer: o.Tracer, Now: o.Now,
	}, t, s.syncIndex)
	return &loop{
		term: t, syncer: syncer, intake: &intake{term: t, syncer: syncer, waiting: make(keySet)},
		dispatcher: &dispatcher{term: t, told: make(toldHolds), unrecorded: make(map[string]bool)},
	}
}

// CountSync implements forcesync.Host.
func (t *term) CountSync(ctx context.Context, change int64) { t.metrics.syncsNow.Add(ctx, change) }

// CountFailedSync implements forcesync.Host.
func (t *term) CountFailedSync(ctx context.Context) { t.metrics.patchFailed(ctx, forcesync.Kind) }
