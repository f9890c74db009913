package forcesync

import (
	"cmp"
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
	changeWait                           = 3 * time.Second // how long to wait after a sync for the event of what it writes, which mostly comes before
	serverLag                            = 3 * time.Second // how long after the first server of a store the others may take to return a change
	maxRepeats                           = 2               // of a sync that changed nothing: a standby of the store may have answered
)

// HeldEvent is an event that is not finished before each Hold of it is released. The error is the reason for giving up, or nil.
type HeldEvent interface {
	Hold()
	Release(err error)
}

type state int

const (
	queued   state = iota // waits for its turn
	untried               // waits for the operator to try a new ExternalSecret
	patching              // waits for the answer to its patch
	retrying              // waits to be queued again after a failed patch
	syncing               // was patched, and waits for the operator
	checking              // was synced, and waits for a change of what the ExternalSecret writes
)

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
	changed    bool       // what the ExternalSecret writes has changed since the patch
	unclear    bool       // it has, but maybe by an earlier change of the store: the sync is repeated once
	sent       time.Time  // when this actuator sent the last patch that succeeded; zero before that, as the next two
	asked      time.Time  // when the wait for the operator began
	visible    time.Time  // when the store was first seen to return what the sync is for
	wait       trace.Span // for the operator; nil if the sync is not waiting for it
}

func (s *pendingSync) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.process)
}

// isSynced reports whether the operator has synced the ExternalSecret since the patch, or since the change if the version before is unknown.
func (s *pendingSync) isSynced() bool {
	return s.seen.Ready && (s.seen.SyncedVersion != s.from || !s.certain && s.isRefreshed())
}

func (s *pendingSync) isRefreshed() bool {
	return !s.seen.RefreshTime.Before(s.change.Time.Truncate(time.Second))
}

func (s *pendingSync) isOfTemplate() bool { return s.change.Store == nil }

func (s *pendingSync) isOfKV() bool {
	return s.change.Store != nil && s.change.Store.Engine == events.EngineKV
}

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
	// One that the operator ignores cannot be told from one that it has not got to. If it takes much longer than the last, others need not wait.
	took := y.lastTook
	y.await(s, syncing, s.asked.Add(min(max(slotFactor*cmp.Or(took, maxSlotTime), minSlotTime), maxSlotTime)))
	y.review(ctx, s)
	y.lastTook = took // What was synced before it was awaited does not tell.
}

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
	if len(syncs) == 1 && len(y.pending[nameOf(syncs[0].seen)]) == 1 {
		y.markVisible(syncs[0])
	}
	for _, s := range syncs {
		isUnclear := y.isUnclear(s)
		s.unclear, s.changed = s.unclear || isUnclear, s.changed || !isUnclear
	}
	for _, s := range syncs {
		if s.changed && s.state == checking {
			y.finish(ctx, s, done, nil)
		}
	}
}

// markVisible records that the store returns what a sync is for, because the only sync of an ExternalSecret has changed what that writes. This shows
// nothing if it may be due to an earlier change of the source, or to data that differs in each answer, such as a remaining time.
func (y *Syncer) markVisible(s *pendingSync) {
	if s.state != syncing && s.state != checking || s.joined || !s.isOfKV() || !s.visible.IsZero() {
		return
	}
	y.each(func(other *pendingSync) {
		if other.change.ID() == s.change.ID() {
			other.visible = y.Now()
		}
	})
}

// isUnclear reports whether what a sync writes may have changed without what the sync is for. A server that lags behind has the changes in their
// order, so only the newest may be missing. Engines other than KV may return other data each time, and a repeat would change it again.
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

// giveUpSlot returns the slot of an ExternalSecret that the operator has failed to sync, or has not got to: it retries by itself.
func (y *Syncer) giveUpSlot(ctx context.Context, s *pendingSync) {
	if s.seen.Failed && s.change.Verb == events.VerbDeleted {
		y.finish(ctx, s, sourceDeleted, nil)
		return
	}
	y.returnSlot(ctx, s)
	y.await(s, syncing, s.asked.Add(syncTimeout))
}

// expire handles a sync whose state ends with time. One that changed nothing is repeated, unless it was sent when all servers of the store returned
// what it is for. One that may have changed what was written is repeated once.
func (y *Syncer) expire(ctx context.Context, s *pendingSync) {
	hasRead := !s.visible.IsZero() && s.sent.After(s.visible.Add(serverLag))
	switch {
	case s.state == retrying:
		y.enqueue(ctx, s)
	case s.state == untried:
		y.finish(ctx, s, neverTried, nil)
	case s.state == checking && s.unclear && (s.repeat > 0 || hasRead):
		y.finish(ctx, s, done, nil)
	case s.state == checking && (s.repeat == maxRepeats || hasRead):
		y.finish(ctx, s, noChange, nil)
	case s.state == checking:
		s.repeat++
		y.enqueue(ctx, s)
	case y.Now().Before(s.asked.Add(syncTimeout)):
		y.giveUpSlot(ctx, s)
	case s.seen.Failed:
		y.finish(ctx, s, refused, nil)
	default:
		y.finish(ctx, s, timedOut, nil)
	}
}
