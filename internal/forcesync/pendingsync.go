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
	maxRepeats  = 2               // repeats of a sync that changed nothing, as a standby of the store may have answered
	// lastRepeat stands for the sync that is requested after the lag of the store. No other one follows it.
	lastRepeat  = maxRepeats + 1
	clockMargin = 10 * time.Second // maximum lag of a store's clock
)

// HeldEvent is an event that is finished once each Hold of it is released. The error is the reason for giving up, or nil.
type HeldEvent interface {
	Hold()
	Release(err error)
}

type state int

const (
	queued   state = iota // waits for its turn
	untried               // waits for the operator to try a new ExternalSecret
	patching              // waits for the response to its patch
	retrying              // waits to be queued again after a failed patch
	syncing               // was patched, and waits for the operator
	checking              // was synced, and waits for a change of the written object
	lagging               // waits for the end of the store's lag, to be queued for the first or another sync
)

// pendingSync is the sync of one ExternalSecret for the changes of one source.
type pendingSync struct {
	change     events.Change
	rotation   externalsecret.Rotation // zero for a template
	event      HeldEvent               // the last event of the change
	process    trace.Span              // of the processing of the event
	superseded bool                    // by a newer change, after a patch for an older one, whose effect may be seen only now
	state      state
	due        time.Time // when the state ends by itself; zero if it does not
	repeat     int       // patches that changed nothing and were repeated; or lastRepeat
	failures   int       // consecutive failed patches
	denials    int       // denied patches for this change
	seen       *externalsecret.ExternalSecret
	from       string // SyncedVersion before the sync
	certain    bool   // false if another actuator sent the patch and did not record from
	hasSlot    bool
	changed    bool       // the written object has changed since the patch
	unclear    bool       // as above, but perhaps because of an earlier change in the store: the sync is repeated once
	sent       time.Time  // when this actuator sent the last successful patch; zero before that
	asked      time.Time  // when the wait for the operator began
	until      time.Time  // the end of the store's lag, before which the first patch is not sent
	once       reason     // why it was synced only then; empty if it was not
	wait       trace.Span // for the operator; nil if the sync is not waiting for it
}

func (s *pendingSync) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.process)
}

// isSynced reports whether the operator has synced the ExternalSecret since the patch or, if the version before it is unknown, since the change.
func (s *pendingSync) isSynced() bool {
	isEarlier := s.repeat == lastRepeat && s.seen.RefreshTime.Before(s.lagEnd())
	return s.seen.Ready && (s.seen.SyncedVersion != s.from || !s.certain && s.isRefreshed() && !isEarlier)
}

func (s *pendingSync) isRefreshed() bool {
	return !s.seen.RefreshTime.Before(s.change.Time.Truncate(time.Second))
}

// lagEnd returns when every server of the store answers with the change, according to the configured lag: the results of earlier syncs show nothing.
// It is zero without a configured lag. The watcher saw the change only after it was made, and with polling much later, so the store's time of the
// change is used, except for an undeletion. The result is in whole seconds, like RefreshTime.
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

// obstacle returns why the sync must not be requested, or "". A deletion is not synced early, because users may undo it before the next refresh.
func (s *pendingSync) obstacle() reason {
	if s.change.Verb == events.VerbDeleted {
		return sourceDeleted
	}
	return reason(s.seen.Obstacle())
}

// mayChangeNothing reports whether a finished sync may have had no visible effect, although it has read the change.
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
