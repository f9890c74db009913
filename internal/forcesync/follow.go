package forcesync

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const (
	syncTimeout = 5 * time.Minute // how long to wait for the operator to sync an ExternalSecret
	// An ExternalSecret that is not synced keeps its slot for slotFactor times as long as the last sync took, within these limits.
	minSlotTime, maxSlotTime, slotFactor = 2 * time.Second, 30 * time.Second, 4

	changeWait = 3 * time.Second // how long to wait after a sync for the event of what it writes, which mostly comes before
	serverLag  = 3 * time.Second // how long after the first server of a store the others may take to return a change
	maxRepeats = 2               // of a sync that changed nothing: a standby of the store may have answered with the old version
)

// HeldEvent is an event that is not finished before each Hold of it is released. The error is the reason for giving up, or nil.
type HeldEvent interface {
	Hold()
	Release(err error)
}

// state is the progress of a pending sync.
type state int

const (
	queued   state = iota // waits for its turn
	untried               // waits for the operator to try a new ExternalSecret
	patching              // waits for the answer to its patch
	retrying              // waits to be queued again after a failed patch
	syncing               // was patched, and waits for the operator
	checking              // was synced, and waits for a change of what the ExternalSecret writes
)

// group has the pending syncs of one ExternalSecret by source.
type group map[events.Source]*pendingSync

// pendingSync is the sync of one ExternalSecret for the changes of one source.
type pendingSync struct {
	change     events.Change
	rotation   externalsecret.Rotation // zero for a template
	event      HeldEvent               // the last event of the change
	process    trace.Span              // of the processing of the event
	joined     bool                    // another event has asked for the sync, too
	superseded bool                    // by a newer change, after a patch for an older one: what that changes may be seen only now
	state      state
	due        time.Time // when the state ends, unless something else ends it before; zero if time does not end it
	repeat     int       // how many patches changed nothing and were followed by another
	failures   int       // failed patches in a row
	denials    int       // denied patches for this change
	seen       *externalsecret.ExternalSecret
	from       string // SyncedVersion before the sync
	certain    bool   // false if another actuator patched and did not record from
	hasSlot    bool
	changed    bool // what the ExternalSecret writes has changed since the patch
	unclear    bool // it has, but maybe by an earlier change of the store: the sync is repeated once
	// sent is when this actuator sent the last patch that succeeded, asked when the wait for the operator began, and visible when the store was first
	// seen to return what the sync is for. They are zero before that.
	sent, asked, visible time.Time
	wait                 trace.Span // for the operator; nil if the sync is not waiting for it
}

// context returns ctx with the span of the event's processing.
func (s *pendingSync) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.process)
}

// isSynced reports whether the operator has synced the ExternalSecret since it was patched. If the version before the patch is unknown, any
// refresh after the change counts, because the annotation asks for one in any case.
func (s *pendingSync) isSynced() bool {
	return s.seen.Ready && (s.seen.SyncedVersion != s.from || !s.certain && isRefreshed(s.seen, s.change))
}

// isRefreshed reports whether the last sync of an ExternalSecret began after a change.
func isRefreshed(es *externalsecret.ExternalSecret, change events.Change) bool {
	return !es.RefreshTime.Before(change.Time.Truncate(time.Second))
}

func (s *pendingSync) isOfTemplate() bool { return s.change.Store == nil }

func (s *pendingSync) isOfKV() bool {
	return s.change.Store != nil && s.change.Store.Engine == events.EngineKV
}

// showsContent reports whether a change of what the ExternalSecret writes proves that the store returns what the sync is for, if the ExternalSecret has
// no other sync. Otherwise, it may be due to an earlier change of the source, or to data that differs in each answer, such as a remaining time.
func (s *pendingSync) showsContent() bool {
	return (s.state == syncing || s.state == checking) && !s.joined && s.isOfKV()
}

// isCurrent reports whether a sync that changed nothing must have read the change that it is for, which the ExternalSecret then does not use.
func (s *pendingSync) isCurrent() bool {
	return !s.visible.IsZero() && s.sent.After(s.visible.Add(serverLag))
}

// endWait ends the span of the wait for the operator, if there is one.
func (s *pendingSync) endWait(why string) {
	if s.wait == nil {
		return
	}
	s.wait.SetAttributes(attribute.String("keyturn.reason", why))
	if why != string(done) {
		s.wait.SetStatus(codes.Error, why)
	}
	s.wait.End()
	s.wait = nil
}

// follow begins to follow an ExternalSecret that was patched at the given time, until it is synced and what it writes has changed.
func (y *Syncer) follow(ctx context.Context, s *pendingSync, since time.Time) {
	s.asked = y.Now()
	_, s.wait = y.Tracer.Start(s.context(ctx), "wait for sync",
		trace.WithTimestamp(since), trace.WithAttributes(identityAttributes(identify(s.seen))...))
	// Some of those that the operator ignores, and of those that fail again, cannot be told from those that it has not got to. But the last sync shows
	// how fast it is: if this one takes several times as long, other syncs need not wait.
	y.await(s, syncing, s.asked.Add(min(max(slotFactor*y.lastTook, minSlotTime), maxSlotTime)))
	y.review(ctx, s)
}

// review looks at the ExternalSecret of a sync, which may have changed.
func (y *Syncer) review(ctx context.Context, s *pendingSync) {
	if s.state != syncing && s.state != untried {
		return
	}
	before, es := s.seen, y.index.get(nameOf(s.seen))
	if es == nil || es.UID != before.UID {
		y.finish(ctx, s, gone, nil)
		return
	}
	s.seen = es
	switch {
	case s.state == untried:
		if !es.Untried() {
			y.enqueue(ctx, s) // The operator may have read it before the change.
		}
	case s.isSynced():
		if !before.Failed { // The operator retries a failure with delays of its own.
			y.lastTook = y.Now().Sub(s.asked)
		}
		y.returnSlot(ctx, s)
		s.endWait(string(done))
		if s.changed || s.isOfTemplate() || !s.rotation.NewContent() || es.Target == (events.Source{}) {
			y.finish(ctx, s, done, nil)
		} else {
			y.await(s, checking, y.Now().Add(changeWait))
		}
	case es.Failed && !before.Failed:
		y.giveUpSlot(ctx, s)
	}
}

// targetChanged is called when a Secret or ConfigMap, which ExternalSecrets may write, has changed.
func (y *Syncer) targetChanged(ctx context.Context, target events.Source) {
	var syncs []*pendingSync
	for _, es := range y.index.find(targetKey(target)) {
		for _, s := range y.pending[nameOf(es)] {
			if s.state != queued || s.repeat > 0 { // Before the first patch, no change is due to the sync.
				syncs = append(syncs, s)
			}
		}
	}
	if len(syncs) == 1 && len(y.pending[nameOf(syncs[0].seen)]) == 1 && syncs[0].showsContent() && syncs[0].visible.IsZero() {
		y.each(func(s *pendingSync) {
			if s.change.ID() == syncs[0].change.ID() {
				s.visible = y.Now() // The store returns the change.
			}
		})
	}
	for _, s := range syncs {
		if y.isUnclear(s) {
			s.unclear = true
		} else {
			s.changed = true
		}
	}
	for _, s := range syncs {
		if s.changed && s.state == checking {
			y.finish(ctx, s, done, nil)
		}
	}
}

// isUnclear reports whether what the ExternalSecret of a sync writes may have changed without what the sync is for. A server that lags behind has the
// changes in their order, so only the newest may be missing. Engines other than KV may return other data each time, and a repeat would change it again.
func (y *Syncer) isUnclear(s *pendingSync) bool {
	if s.state < patching || s.state == retrying || s.repeat > 0 || !s.isOfKV() {
		return false
	}
	others, newest := y.pending[nameOf(s.seen)], true
	var rotations []externalsecret.Rotation
	for _, other := range others {
		newest = newest && (other.isOfTemplate() || !other.change.Time.After(s.change.Time))
		rotations = append(rotations, other.rotation)
	}
	return (s.superseded || newest && len(others) > 1) && s.seen.ReadsOnlyKV(y.index.store, rotations)
}

// giveUpSlot returns the slot of an ExternalSecret that the operator has failed to sync, or has not got to for a while. The operator retries
// by itself, and other syncs need not wait for that.
func (y *Syncer) giveUpSlot(ctx context.Context, s *pendingSync) {
	if s.seen.Failed && s.change.Verb == events.VerbDeleted {
		y.finish(ctx, s, sourceDeleted, nil)
		return
	}
	y.returnSlot(ctx, s)
	y.await(s, syncing, s.asked.Add(syncTimeout))
}

// expire handles a sync whose state ends with time.
func (y *Syncer) expire(ctx context.Context, s *pendingSync) {
	switch {
	case s.state == retrying:
		y.enqueue(ctx, s)
	case s.state == checking:
		y.repeat(ctx, s)
	case s.state == untried:
		y.finish(ctx, s, neverTried, nil)
	case y.Now().Before(s.asked.Add(syncTimeout)):
		y.giveUpSlot(ctx, s)
	case s.seen.Failed:
		y.finish(ctx, s, refused, nil)
	default:
		y.finish(ctx, s, timedOut, nil)
	}
}

// repeat asks again for a sync that changed nothing, up to maxRepeats times, and once for one that may have changed what was written.
func (y *Syncer) repeat(ctx context.Context, s *pendingSync) {
	switch {
	case s.unclear && (s.repeat > 0 || s.isCurrent()):
		y.finish(ctx, s, done, nil)
	case s.repeat == maxRepeats || s.isCurrent():
		y.finish(ctx, s, noChange, nil)
	default:
		s.repeat++
		y.enqueue(ctx, s)
	}
}
