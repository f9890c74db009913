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

// HeldEvent is an event that is not finished while something holds it.
type HeldEvent interface {
	// Hold keeps the event until one more Release.
	Hold()
	// Release undoes one Hold. The error is the reason for giving up, or nil.
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
	change   events.Change
	rotation externalsecret.Rotation // zero for a template
	// event is the last event of the change, and process the span of its processing. joined is set when a second event has asked for the sync.
	event   HeldEvent
	process trace.Span
	joined  bool
	// superseded is set when a newer change has arrived after a patch for an older one: what the older one changes may be seen only now.
	superseded bool

	state state
	// due is when the state ends, unless something else ends it before. It is zero for a state that time does not end.
	due time.Time
	// repeat counts the patches that changed nothing and were followed by another.
	repeat int
	// failures counts the failed patches in a row. denials counts the patches for this change that the API server denied.
	failures, denials int

	// seen is the last known state of the ExternalSecret.
	seen *externalsecret.ExternalSecret
	// from is the ExternalSecret's SyncedVersion before the sync. It is not certain if another actuator patched and did not record it.
	from    string
	certain bool
	hasSlot bool
	// changed is set when what the ExternalSecret writes has changed since the patch. unclear is set if that may be due to an earlier change of the
	// store. The sync is then repeated once.
	changed, unclear bool
	// sent is when this actuator sent the last patch that succeeded, asked when the wait for the operator began, and visible when the store was first
	// seen to return what the sync is for. They are zero before that.
	sent, asked, visible time.Time
	// wait is the span of the wait for the operator, or nil if the sync is not waiting for it.
	wait trace.Span
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
	return !s.isOfTemplate() && s.change.Store.Engine == events.EngineKV
}

// showsContent reports whether a change of what the ExternalSecret writes proves that the store returns what the sync is for, provided that
// this is the only sync of the ExternalSecret. Otherwise, the change may also be due to an earlier change of the source, or to data that
// differs in each answer, such as the remaining time of a role's password.
func (s *pendingSync) showsContent() bool {
	return (s.state == syncing || s.state == checking) && !s.joined && s.isOfKV()
}

// mayLack reports whether what the ExternalSecret writes may have changed without what the sync is for. others are all syncs of the ExternalSecret.
// A server that lags behind has the changes in their order, so only the newest may be missing. In engines other than KV, data may differ in each
// answer, and a repeat would change it again: see ExternalSecret.ReadsOnlyKV for what else the ExternalSecret reads.
func (s *pendingSync) mayLack(others group) bool {
	if s.state < patching || s.state == retrying || s.repeat > 0 || !s.isOfKV() {
		return false
	}
	newest := true
	for _, other := range others {
		newest = newest && (other.isOfTemplate() || !other.change.Time.After(s.change.Time))
	}
	return s.superseded || newest && len(others) > 1
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
