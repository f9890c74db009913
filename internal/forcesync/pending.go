package forcesync

import (
	"cmp"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
)

// key identifies a pending sync: one ExternalSecret, and the source whose changes it is synced for.
type key struct {
	source events.Source
	secret types.NamespacedName
}

func (k key) compare(other key) int {
	return cmp.Or(
		strings.Compare(k.secret.Namespace, other.secret.Namespace),
		strings.Compare(k.secret.Name, other.secret.Name),
		strings.Compare(k.source.String(), other.source.String()),
	)
}

// state is the progress of a pending sync.
type state int

const (
	// queued waits for its turn.
	queued state = iota
	// untried waits for the operator to try to sync a new ExternalSecret.
	untried
	// patching waits for the answer to its patch.
	patching
	// retrying waits to be queued again after a failed patch.
	retrying
	// syncing was patched, and waits for the operator.
	syncing
	// checking was synced, and waits for a change of what the ExternalSecret writes.
	checking
)

// pendingSync is the sync of one ExternalSecret for the changes of one source.
type pendingSync struct {
	key      key
	change   events.Change
	rotation externalsecret.Rotation
	// causes has the events that ask for the sync. The newest change comes last. Before it may be the last event that came later although its
	// change is older. joined says that more than one event has asked.
	causes []cause
	joined bool
	// superseded is set when a newer change has arrived after a patch for an older one: what that changes may be seen only now.
	superseded bool

	state state
	// due is set while the sync is on the agenda.
	due time.Time
	// repeat counts the patches that changed nothing and were followed by another.
	repeat int
	// failures counts the failed patches in a row, and backoff has the delay after the next one. denials counts the patches for this change
	// that the API server denied.
	failures, denials int
	backoff           wait.Backoff
	// stale is set when a newer change arrives during the patch for the older one.
	stale bool

	// seen is the last known state of the ExternalSecret.
	seen *externalsecret.ExternalSecret
	// from is the ExternalSecret's SyncedVersion before the sync. It is not certain if another actuator patched and did not record it.
	from    string
	certain bool
	// hasSlot is set while the sync counts against Host.MaxSyncs, which is until slotUntil at the latest.
	hasSlot   bool
	slotUntil time.Time
	// deadline is when the wait for the operator ends, once it was asked.
	deadline time.Time
	// patched is set once this actuator has patched.
	patched bool
	// failedBefore is set when the operator already failed to sync the ExternalSecret before the patch.
	failedBefore bool
	// changed is set when what the ExternalSecret writes has changed since the patch.
	changed bool
	// unclear is set when it has changed, but maybe only by an earlier change of the store. The sync is then repeated once.
	unclear bool
	// sent is when this actuator last sent a patch. visible is when the store was first seen to return what the sync is for. Both are
	// zero before that.
	sent, visible time.Time
	// span is the span of the wait for the operator, or nil if the sync is not waiting for it.
	span trace.Span
}

// newPending returns the sync of an ExternalSecret for a change.
func newPending(es *externalsecret.ExternalSecret, change events.Change, rotation externalsecret.Rotation, of cause) *pendingSync {
	return &pendingSync{
		key: key{change.Source, nameOf(es)}, change: change, rotation: rotation, causes: []cause{of}, backoff: kube.PatchBackoff(), seen: es,
	}
}

// newest returns the event that the sync is for.
func (s *pendingSync) newest() cause { return s.causes[len(s.causes)-1] }

// isSynced reports whether the operator has synced the ExternalSecret since it was patched. If the version before the patch is unknown, any
// refresh after the change counts, because the annotation asks for one in any case.
func (s *pendingSync) isSynced() bool {
	return s.seen.Ready && (s.seen.SyncedVersion != s.from ||
		!s.certain && !s.seen.RefreshTime.Before(s.change.Time.Truncate(time.Second)))
}

// showsContent reports whether a change of what the ExternalSecret writes proves that the store returns what the sync is for, provided that
// this is the only sync of the ExternalSecret. Otherwise, the change may also be due to an earlier change of the source, or to data that
// differs in each answer, such as the remaining time of a role's password.
func (s *pendingSync) showsContent() bool {
	return (s.state == syncing || s.state == checking) && !s.joined && s.change.Store.Engine == events.EngineKV
}

// mayLack reports whether what the ExternalSecret writes may have changed without what the sync is for. others are all syncs of the ExternalSecret.
// A server that lags behind has the changes in their order, so only the newest may be missing. In engines other than KV, data may differ in each
// answer, and a repeat would change it again: see Index.readsOnlyKV for what else the ExternalSecret reads.
func (s *pendingSync) mayLack(others group) bool {
	if s.state < patching || s.state == retrying || s.repeat > 0 || s.change.Store.Engine != events.EngineKV {
		return false
	}
	newest := true
	for _, other := range others {
		newest = newest && !other.change.Time.After(s.change.Time)
	}
	return s.superseded || newest && len(others) > 1
}

// isCurrent reports whether a sync that changed nothing must have read the change that it is for. If so, the ExternalSecret does not use what
// changed.
func (s *pendingSync) isCurrent() bool {
	return !s.visible.IsZero() && s.sent.After(s.visible.Add(serverLag))
}

// endWait ends the span of the wait for the operator, if there is one.
func (s *pendingSync) endWait(reason string) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.String("keyturn.reason", reason))
	if reason != done.String() {
		s.span.SetStatus(codes.Error, reason)
	}
	s.span.End()
	s.span = nil
}
