package forcesync

import (
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
	maxRepeats  = 2               // of a sync that changed nothing: a standby of the store may have answered
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
