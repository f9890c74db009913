package forcesync

import (
	"cmp"
	"context"
	"strconv"
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
	maxRepeats                           = 2               // of a sync that changed nothing: a standby of the store may have answered
	// lastRepeat stands for the sync that is asked for after the lag of the store. None follows it.
	lastRepeat  = maxRepeats + 1
	clockMargin = 10 * time.Second // by which the clock of a store may be late
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
	lagging               // waits for the end of the store's lag, to be queued: again after a sync, or only then
)

// pendingSync is the sync of one ExternalSecret for the changes of one source.
type pendingSync struct {
	change     events.Change
	rotation   externalsecret.Rotation // zero for a template
	event      HeldEvent               // the last event of the change
	process    trace.Span              // of the processing of the event
	superseded bool                    // by a newer change, after a patch for an older one: what that changes may be seen only now
	state      state
	due        time.Time // when the state ends, unless something else ends it before; zero if time does not end it
	repeat     int       // how many patches changed nothing and were followed by another; or lastRepeat
	failures   int       // failed patches in a row
	denials    int       // denied patches for this change
	seen       *externalsecret.ExternalSecret
	from       string // SyncedVersion before the sync
	certain    bool   // false if another actuator patched and did not record from
	hasSlot    bool
	changed    bool       // what the ExternalSecret writes has changed since the patch
	unclear    bool       // it has, but maybe by an earlier change of the store: the sync is repeated once
	sent       time.Time  // when this actuator sent the last patch that succeeded; zero before that, as the next
	asked      time.Time  // when the wait for the operator began
	until      time.Time  // until when to wait before the first patch: the end of the store's lag
	once       reason     // why it was only synced then; empty if it was not
	wait       trace.Span // for the operator; nil if the sync is not waiting for it
}

func (s *pendingSync) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.process)
}

// isSynced reports whether the operator has synced the ExternalSecret since the patch, or since the change if the version before is unknown.
func (s *pendingSync) isSynced() bool {
	isEarlier := s.repeat == lastRepeat && s.seen.RefreshTime.Before(s.lagEnd())
	return s.seen.Ready && (s.seen.SyncedVersion != s.from || !s.certain && s.isRefreshed() && !isEarlier)
}

func (s *pendingSync) isRefreshed() bool {
	return !s.seen.RefreshTime.Before(s.change.Time.Truncate(time.Second))
}

// lagEnd returns when every server of the store answers with what the sync is for, as far as its lag is known: whatever an earlier sync wrote shows
// nothing. It is zero if the store declares no lag. The watcher saw the change only after it was made, and by polling much later, which the store's
// time of the change tells, except of an undeletion. It is a whole second, so that it can be compared with RefreshTime.
func (s *pendingSync) lagEnd() time.Time {
	if s.change.Store == nil || s.change.Store.LagSeconds == 0 {
		return time.Time{}
	}
	made := s.change.Time
	if at, err := strconv.ParseInt(s.change.ResourceVersion, 10, 64); err == nil && s.change.Store.Operation != "undelete" {
		if latest := time.Unix(0, at).Add(clockMargin); latest.Before(made) {
			made = latest
		}
	}
	return made.Add(time.Duration(s.change.Store.LagSeconds)*time.Second + time.Second - 1).Truncate(time.Second)
}

func (s *pendingSync) isOfTemplate() bool { return s.change.Store == nil }

// obstacle returns why the sync must not be requested, or "". A deletion is not hurried: by the next refresh, people may have taken it back.
func (s *pendingSync) obstacle() reason {
	if s.change.Verb == events.VerbDeleted {
		return sourceDeleted
	}
	return reason(s.seen.Obstacle())
}

// mayChangeNothing reports whether a sync that is done may have changed nothing that can be seen, although it has read what it is for.
func (s *pendingSync) mayChangeNothing() bool {
	isUnseen := s.seen.Target == (events.Source{}) || s.seen.LacksTarget()
	return isUnseen || s.isOfTemplate() || !s.rotation.NewContent() && !s.seen.DeletedTarget()
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
		switch {
		case y.awaitLag(s):
		case s.changed || s.mayChangeNothing():
			y.finish(ctx, s, done, nil)
		default:
			y.await(s, checking, y.Now().Add(changeWait))
		}
	case s.obstacle() != "":
		y.finish(ctx, s, s.obstacle(), nil)
	case es.Failed && !before.Failed:
		y.giveUpSlot(ctx, s)
	}
}

// awaitLag has an ExternalSecret that was synced before the end of the store's lag synced once more then. It returns false if it was not.
func (y *Syncer) awaitLag(s *pendingSync) bool {
	end := s.lagEnd()
	if s.repeat == lastRepeat || !s.seen.RefreshTime.Before(end) {
		return false
	}
	y.await(s, lagging, end)
	return true
}

// mustWait reports whether a sync must not begin before the end of the store's lag, because it would have to be repeated then. A later change does
// not prolong that: a secret that is written all the time would never be synced.
func (y *Syncer) mustWait(s *pendingSync) bool {
	if s.until.IsZero() {
		s.once = ""
		if end := s.lagEnd(); y.Now().Before(end) {
			if s.once = y.readsOnce(s); s.once != "" {
				s.until = end
			}
		}
	}
	return y.Now().Before(s.until)
}

// readsOnce returns why an ExternalSecret must not be synced more often than it has to: each sync would roll those who read what it writes. Engines
// other than KV may return other data each time. It is empty if nothing is in the way.
func (y *Syncer) readsOnce(s *pendingSync) reason {
	var rotations []externalsecret.Rotation
	for _, other := range y.pending[nameOf(s.seen)] {
		rotations = append(rotations, other.rotation)
	}
	switch {
	case s.seen.Unsteady != "":
		return onceForTemplate
	case !s.seen.ReadsOnlyKV(y.index.store, rotations):
		return onceForEngine
	}
	return ""
}

// targetChanged is called when a Secret or ConfigMap, which ExternalSecrets may write, has changed.
func (y *Syncer) targetChanged(ctx context.Context, target events.Source) {
	var syncs []*pendingSync
	for _, es := range y.index.find(targetKey(target)) {
		for _, s := range y.pending[nameOf(es)] {
			// Before the first patch, no change is due to the sync. One that waits for its turn after the lag of the store was patched before that.
			if isBefore := (s.state == queued || s.state == lagging) && s.sent.IsZero(); !isBefore || s.repeat > 0 {
				syncs = append(syncs, s)
			}
		}
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

// isUnclear reports whether what a sync writes may have changed without what the sync is for. A server that lags behind has the changes in their
// order, so only the newest may be missing.
func (y *Syncer) isUnclear(s *pendingSync) bool {
	isPatched := s.state >= patching && s.state != retrying
	if !isPatched || s.repeat > 0 || s.isOfTemplate() || s.change.Store.Engine != events.EngineKV {
		return false
	}
	others, newest := y.pending[nameOf(s.seen)], true
	for _, other := range others {
		newest = newest && (other.isOfTemplate() || !other.change.Time.After(s.change.Time))
	}
	return (s.superseded || newest && len(others) > 1) && y.readsOnce(s) == ""
}

// giveUpSlot returns the slot of an ExternalSecret that the operator has failed to sync, or has not got to: it retries by itself.
func (y *Syncer) giveUpSlot(ctx context.Context, s *pendingSync) {
	y.returnSlot(ctx, s)
	y.await(s, syncing, s.asked.Add(syncTimeout))
}

// expire handles a sync whose state ends with time. One that changed nothing is repeated, unless it was made after the lag of the store. One that may
// have changed what was written is repeated once.
func (y *Syncer) expire(ctx context.Context, s *pendingSync) {
	switch {
	case s.state == retrying || s.state == lagging:
		y.enqueue(ctx, s)
	case s.state == untried:
		y.finish(ctx, s, neverTried, nil)
	case s.state == checking && s.unclear && s.repeat > 0:
		y.finish(ctx, s, done, nil)
	case s.state == checking && (s.repeat >= maxRepeats || !s.lagEnd().IsZero()):
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
