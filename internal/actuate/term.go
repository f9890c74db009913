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

// overdueCheck is the interval between checks for overdue rollouts.
const overdueCheck = 5 * time.Second

// Actuator rolls workloads when their sources change. Make one with New.
type Actuator struct {
	surroundings

	// syncWatch is nil without Options.ForceSync.
	syncWatch *forcesync.Watch
	leading   atomic.Bool
	// unconfined contains the problems of the policies that confine this account. It is nil until the first check has succeeded.
	unconfined atomic.Pointer[[]string]
}

// surroundings outlive a loop, which lives for one term of leadership.
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

// term contains the parts of a loop and the state that they share. The parts embed it; each changes only its own state.
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
