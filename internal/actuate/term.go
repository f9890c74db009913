package actuate

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// overdueCheck is how often the loop looks for rollouts that take too long.
const overdueCheck = 5 * time.Second

// Actuator rolls the workloads that depend on what changed. Make one with New.
type Actuator struct {
	surroundings

	// syncWatch is nil without Options.ForceSync.
	syncWatch *forcesync.Watch
	leading   atomic.Bool
	// unconfined is which of the policies that confine this account are missing. It points to nothing until that is known.
	unconfined atomic.Pointer[[]string]
}

// surroundings outlive a loop, which lives for one term as the leader.
type surroundings struct {
	options   Options
	kinds     workload.Kinds
	bus       *bus.Bus
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
	settling  *settling
	patcher   *patcher
	orders    *orders
	admission *admission
	rollouts  *rollouts
	notes     *notes
}
