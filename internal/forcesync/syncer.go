package forcesync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/fair"
)

// Options configures a Syncer. Every field except DryRun and Alone is required.
type Options struct {
	Cluster  string // its name in outcomes
	DryRun   bool   // reports the syncs, and patches nothing
	MaxSyncs int    // how many ExternalSecrets may be patched and not synced yet
	// Alone means that ExternalSecrets of only one namespace are watched, which then gets all of MaxSyncs. Another gets half of what others leave.
	Alone  bool
	Client dynamic.Interface
	Log    *slog.Logger
	Tracer trace.Tracer
	Now    func() time.Time
}

// Host is the program that runs a Syncer.
type Host interface {
	// ReportSync reports an outcome, and how long ago the watcher saw its change. If warning is not empty, it is the reason of a Kubernetes Event.
	ReportSync(ctx context.Context, outcome events.Outcome, warning string, took time.Duration)
	CountSync(ctx context.Context, change int64) // 1 if an ExternalSecret takes a slot, -1 if it returns it
	CountFailedSync(ctx context.Context)         // a failed patch that will be retried
}

// Syncer syncs the ExternalSecrets that read a secret in a store, or whose template names a Secret or a ConfigMap, when that changes. Create one with
// New each time the actuator becomes the leader.
type Syncer struct {
	Options
	host      Host
	index     *Index
	addresses map[storeAddress]struct{} // that were logged
	// pending has every sync until it is finished.
	pending map[types.NamespacedName]group
	// turns queues the syncs. Sources take turns, so that one that many ExternalSecrets read does not delay the others, and so do the namespaces of each,
	// because anyone may create ExternalSecrets that read it. Those that were never synced come last: what they name may not be theirs to read.
	turns, last *fair.Turns[*pendingSync]
	slots       *fair.Slots    // of the ExternalSecrets that are patched and not synced yet
	lastTook    time.Duration  // how long the operator took for the last sync; zero before the first
	due         time.Time      // when the first state may end; zero if none does
	sending     sync.WaitGroup // of patches
}

// New returns a Syncer. No other Syncer may use the Index until this one is stopped.
func New(options Options, host Host, index *Index) *Syncer {
	path := func(s *pendingSync) []string { return []string{s.change.Source.String(), s.seen.Namespace} }
	return &Syncer{
		Options: options, host: host, index: index, addresses: make(map[storeAddress]struct{}), pending: make(map[types.NamespacedName]group),
		turns: fair.NewTurns(path), last: fair.NewTurns(path), slots: fair.NewSlots(options.MaxSyncs, options.Alone),
	}
}

// Take handles an event about a secret in a store, or about an object that ExternalSecrets write or that their templates name. It holds the event
// once for each sync. span is that of the event's processing.
func (y *Syncer) Take(ctx context.Context, change events.Change, span trace.Span, event HeldEvent) {
	if change.Verb == events.VerbChanged {
		y.targetChanged(ctx, change.Source)
	}
	y.logElsewhere(ctx, change)
	for _, s := range y.asked(change, span, event) {
		y.consider(ctx, s)
	}
}

// Resume is Take for a last event when the Syncer begins. It asks only for the syncs that are not finished, as far as the ExternalSecrets show.
func (y *Syncer) Resume(ctx context.Context, change events.Change, span trace.Span, event HeldEvent) {
	for _, s := range y.asked(change, span, event) {
		if y.lacks(s.seen, change) {
			y.consider(ctx, s)
		}
	}
}

// asked returns the syncs that an event asks for.
func (y *Syncer) asked(change events.Change, span trace.Span, event HeldEvent) (syncs []*pendingSync) {
	var list []*externalsecret.ExternalSecret
	rotation, isRotation := externalsecret.RotationOf(change)
	switch {
	case isRotation:
		list = y.index.dependents(rotation)
	case change.Verb == events.VerbChanged:
		list = y.index.find(templateKey(change.Source))
	}
	for _, es := range list {
		syncs = append(syncs, &pendingSync{change: change, rotation: rotation, event: event, process: span, seen: es})
	}
	return syncs
}

// lacks reports whether an ExternalSecret has still to be synced for a change. One that failed, the operator tries again anyway. A sync that was asked
// for longer ago than it may take has been reported. One that was not asked for, and began in the second of the change, may have read the old version.
func (y *Syncer) lacks(es *externalsecret.ExternalSecret, change events.Change) bool {
	if y.obstacle(es) != "" || es.Untried() || es.Failed {
		return false
	}
	if y.index.target(es).asked(change.ID()) < 0 {
		return !es.Ready || !es.RefreshTime.After(change.Time)
	}
	return (!es.Ready || !isRefreshed(es, change)) && y.Now().Sub(change.Time) < syncTimeout
}

// obstacle returns the reason why an ExternalSecret must not be synced, or an empty one if it may be.
func (y *Syncer) obstacle(es *externalsecret.ExternalSecret) reason {
	if why := reason(es.Obstacle()); why != "" || !y.DryRun {
		return why
	}
	return dryRun
}

// consider begins a sync, unless one is pending for the same source or the ExternalSecret cannot be synced.
func (y *Syncer) consider(ctx context.Context, s *pendingSync) {
	name, source := nameOf(s.seen), s.change.Source
	if earlier := y.pending[name][source]; earlier != nil {
		y.join(ctx, earlier, s)
		return
	}
	if why := y.obstacle(s.seen); why != "" {
		y.report(ctx, s, why)
		return
	}
	if y.pending[name] == nil {
		y.pending[name] = make(group)
	}
	y.pending[name][source] = s
	s.event.Hold()
	y.enqueue(ctx, s)
}

// join makes a pending sync one for the event of later, unless that has an older change. If the change is newer, the sync starts over for it.
func (y *Syncer) join(ctx context.Context, s, later *pendingSync) {
	s.joined = true
	isSame := later.change.ID() == s.change.ID()
	if !isSame && !events.Newer(later.change.ResourceVersion, s.change.ResourceVersion) {
		return
	}
	later.event.Hold()
	s.event.Release(nil)
	s.event, s.process = later.event, later.process
	if isSame {
		return
	}
	s.superseded = s.superseded || s.state == patching || !s.sent.IsZero()
	s.change, s.rotation = later.change, later.rotation
	s.repeat, s.denials, s.changed, s.unclear, s.visible = 0, 0, false, false, time.Time{}
	if s.state == syncing || s.state == checking || s.state == untried {
		y.enqueue(ctx, s) // The other states lead to a patch for the newer change.
	}
}

// enqueue makes a sync wait for its turn, whatever it waited for before.
func (y *Syncer) enqueue(ctx context.Context, s *pendingSync) {
	y.returnSlot(ctx, s)
	s.endWait("superseded")
	s.state, s.due = queued, time.Time{}
	if s.seen.SyncedVersion == "" {
		y.last.Push(s)
	} else {
		y.turns.Push(s)
	}
}

// await puts a sync into a state that ends at the given time, unless something else ends it before.
func (y *Syncer) await(s *pendingSync, in state, until time.Time) {
	s.state, s.due = in, until
	if y.due.IsZero() || until.Before(y.due) {
		y.due = until
	}
}

// finish ends a sync, reports why, and releases its event. If err is not nil, it is why it was given up.
func (y *Syncer) finish(ctx context.Context, s *pendingSync, why reason, err error) {
	name := nameOf(s.seen)
	if delete(y.pending[name], s.change.Source); len(y.pending[name]) == 0 {
		delete(y.pending, name)
	}
	y.returnSlot(ctx, s)
	s.endWait(string(why))
	y.report(ctx, s, why)
	s.event.Release(err)
}

// takeSlot counts a sync against MaxSyncs. The ExternalSecrets of one ClusterExternalSecret are patched together, and may exceed that.
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

// Signal returns a channel that is readable when Collect has something to do.
func (y *Syncer) Signal() <-chan struct{} { return y.index.signal }

// Collect handles the answers to patches and the changes of ExternalSecrets.
func (y *Syncer) Collect(ctx context.Context) {
	for _, p := range y.index.take() {
		y.answered(ctx, p)
	}
	y.each(func(s *pendingSync) { y.review(ctx, s) })
}

// each calls a function with every pending sync, which it may finish.
func (y *Syncer) each(do func(s *pendingSync)) {
	for _, all := range y.pending {
		for _, s := range all {
			do(s)
		}
	}
}

// Next returns when to call Advance next if nothing else happens before. ok is false if there is no such time.
func (y *Syncer) Next() (at time.Time, ok bool) { return y.due, !y.due.IsZero() }

// Advance handles what is due, and patches while slots are free.
func (y *Syncer) Advance(ctx context.Context) {
	if now := y.Now(); !y.due.IsZero() && !now.Before(y.due) {
		y.due = time.Time{}
		y.each(func(s *pendingSync) {
			switch {
			case s.due.IsZero():
			case now.Before(s.due):
				y.await(s, s.state, s.due)
			default:
				y.expire(ctx, s)
			}
		})
	}
	for s := y.next(); s != nil; s = y.next() {
		y.start(ctx, s)
	}
}

// Stop waits for the patches that are being sent, drops their answers, and returns all slots. The events stay held.
func (y *Syncer) Stop(ctx context.Context) {
	y.sending.Wait()
	y.index.take()
	y.each(func(s *pendingSync) {
		y.returnSlot(ctx, s)
		s.endWait("interrupted")
	})
}
