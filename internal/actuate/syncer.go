package actuate

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// syncSlot is how long an ExternalSecret that is not synced counts as in progress. Then it is for External Secrets
	// Operator to get to it, and the others need not wait for that.
	syncSlot = 30 * time.Second
	// failingSlot is the same of one that the operator could not sync before, for nothing may be seen of it that it fails again.
	failingSlot = 3 * time.Second
	// changeWait is how long the change of what a sync writes is waited for. It mostly comes before the sync is seen.
	changeWait = 3 * time.Second
	// maxRepeats is how often an ExternalSecret is asked again when a sync has changed nothing. A standby of the store may have
	// answered, which did not have the new version yet.
	maxRepeats = 2
	// syncTick is how often the time is looked at while there is anything to be done.
	syncTick = 250 * time.Millisecond
)

// syncer has the ExternalSecrets that read a secret in a store synced when it changes, and watches them to the end of it.
// The event of the change stays open for as long. Its state belongs to the goroutine of the engine.
//
// What an ExternalSecret is asked with is the same whenever it is made of the same event. So an actuator that takes over
// finds what was asked, and goes on from there.
type syncer struct {
	engine *engine
	index  *syncIndex
	inbox  *syncInbox
	// settle is told of each event that is done with.
	settle func(context.Context, *ticket, error)

	syncs map[syncKey]*forcedSync
	// bySecret are the same by the ExternalSecret, and byTarget by what it writes.
	bySecret map[types.NamespacedName]map[syncKey]*forcedSync
	byTarget map[events.Source]map[syncKey]*forcedSync
	queue    *syncQueue
	// inProgress counts those that are asked and not synced.
	inProgress int
	// ticking is there while the time is to be looked at.
	ticking *time.Timer
	// told are the problems of each ExternalSecret that were told.
	told map[types.NamespacedName]string
}

func newSyncer(e *engine, index *syncIndex, inbox *syncInbox) *syncer {
	inbox.forget()
	return &syncer{
		engine: e, index: index, inbox: inbox, settle: e.settle,
		syncs:    make(map[syncKey]*forcedSync),
		bySecret: make(map[types.NamespacedName]map[syncKey]*forcedSync),
		byTarget: make(map[events.Source]map[syncKey]*forcedSync),
		queue:    newSyncQueue(),
		told:     make(map[types.NamespacedName]string),
	}
}

// take begins to deal with an event: that of a secret in a store, or of something that ExternalSecrets write.
func (y *syncer) take(t *ticket) {
	change := t.delivery.Change
	if change.Verb != events.VerbDeleted {
		for _, s := range y.byTarget[change.Source] {
			s.changed = true
			if s.state == syncChecking {
				y.conclude(t.ctx, s, syncDone)
			}
		}
	}
	rotation, ok := externalsecret.RotationOf(change)
	if !ok {
		return
	}
	for _, es := range y.index.dependents(rotation) {
		y.consider(t, es, rotation)
	}
}

// consider takes an event to one ExternalSecret.
func (y *syncer) consider(t *ticket, es *externalsecret.ExternalSecret, rotation externalsecret.Rotation) {
	key := syncKey{t.delivery.Change.Source, nameOf(es)}
	if s := y.syncs[key]; s != nil {
		t.open++
		if !workload.Newer(t.delivery.Change.ResourceVersion, s.change.ResourceVersion) {
			s.tickets = slices.Insert(s.tickets, 0, t)
			return
		}
		s.tickets = append(s.tickets, t)
		s.change, s.rotation = t.delivery.Change, rotation
		y.renew(s)
		return
	}
	s := &forcedSync{key: key, change: t.delivery.Change, rotation: rotation, tickets: []*ticket{t}, seen: es}
	if reason := refusal(es, y.engine.options.DryRun); reason != syncUnknown {
		y.say(t.ctx, s, reason)
		return
	}
	t.open++
	y.syncs[key] = s
	gather(y.bySecret, key.secret, s)
	y.enqueue(s)
}

// renew begins again for a newer change of the same secret. Only what was not asked for the older one has been spared.
func (y *syncer) renew(s *forcedSync) {
	s.repeat, s.failures, s.changed = 0, 0, false
	switch s.state {
	case syncQueued:
	case syncAsking:
		s.stale = true // what was asked is known when the answer is there
	default:
		y.enqueue(s)
	}
}

// enqueue has a sync wait for its turn.
func (y *syncer) enqueue(s *forcedSync) {
	y.letGo(s)
	endSpan(s, reasonSuperseded)
	s.state, s.stale = syncQueued, false
	y.queue.push(s)
	if y.ticking == nil {
		y.ticking = time.AfterFunc(syncTick, y.inbox.ring)
	}
}

// work does what the inbox says that there is to be done.
func (y *syncer) work(ctx context.Context) {
	changed, answers, rung := y.inbox.take()
	for _, a := range answers {
		y.answered(ctx, a)
	}
	for name := range changed {
		y.problems(ctx, name)
		for _, s := range y.bySecret[name] {
			y.review(ctx, s)
		}
	}
	if rung {
		y.ticking = nil
		for _, s := range y.syncs {
			y.overdue(ctx, s)
		}
		if len(y.syncs) > 0 {
			y.ticking = time.AfterFunc(syncTick, y.inbox.ring)
		}
	}
	y.dispatch(ctx)
}

// dispatch asks those whose turn it is.
func (y *syncer) dispatch(ctx context.Context) {
	for y.inProgress < y.engine.options.MaxSyncs {
		s := y.queue.pop()
		if s == nil {
			return
		}
		y.begin(ctx, s)
	}
}

// problems tells what of an ExternalSecret cannot be read, once for each wording.
func (y *syncer) problems(ctx context.Context, name types.NamespacedName) {
	es := y.index.get(name)
	if es == nil || len(es.Problems) == 0 {
		delete(y.told, name)
		return
	}
	err := errors.Join(es.Problems...)
	if y.told[name] != err.Error() {
		y.told[name] = err.Error()
		y.engine.log.WarnContext(ctx, "an externalsecret cannot be read", "externalsecret", name.Name, "namespace", name.Namespace, "err", err)
	}
}

// stop ends what is under way. The events stay open.
func (y *syncer) stop() {
	if y.ticking != nil {
		y.ticking.Stop()
	}
	for _, s := range y.syncs {
		endSpan(s, "interrupted")
	}
}
