package actuate

import (
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// syncKey is one ExternalSecret and what it is to be synced for.
type syncKey struct {
	source events.Source
	secret types.NamespacedName
}

// syncState is how far the sync of one ExternalSecret is.
type syncState int

const (
	// syncQueued waits for its turn.
	syncQueued syncState = iota
	// syncAsking is being patched.
	syncAsking
	// syncRetrying could not be patched, and waits to be tried again.
	syncRetrying
	// syncAsked was patched, and is not synced yet.
	syncAsked
	// syncChecking was synced, and what it writes is waited for.
	syncChecking
)

// forcedSync is the sync of one ExternalSecret for the changes of one source.
type forcedSync struct {
	key      syncKey
	change   events.Change
	rotation externalsecret.Rotation
	tickets  []*ticket

	state syncState
	// due is when something is to be done about it, in the states in which time matters.
	due time.Time
	// repeat is how often it was asked again, and failures how often that could not be done.
	repeat, failures int
	// stale says that a newer change came while it was being patched.
	stale bool

	// seen is its last known state.
	seen *externalsecret.ExternalSecret
	// from is its SyncedVersion before the sync. It is not certain where another actuator asked, and left no note of it.
	from    string
	certain bool
	// holds says that it counts as in progress, and until then it does.
	holds     bool
	holdUntil time.Time
	// tried says that this actuator has asked before.
	tried bool
	// failedBefore says that the operator could not sync it when it was asked.
	failedBefore bool
	// changed says that what it writes has changed since it was asked.
	changed bool
	// span is that of the wait for the sync.
	span trace.Span
}

// newest is the ticket of the event that the sync is for.
func (s *forcedSync) newest() *ticket { return s.tickets[len(s.tickets)-1] }

// isSynced tells whether the ExternalSecret was synced since it was asked. Where it is not certain what it was synced to
// before, a sync since the change will do: what was asked stands in the annotation, and the operator gets to it either way.
func (s *forcedSync) isSynced() bool {
	return s.seen.Ready && (s.seen.SyncedVersion != s.from ||
		!s.certain && !s.seen.RefreshTime.Before(s.change.Time.Truncate(time.Second)))
}

// gather and scatter put a sync into a map of several, and take it out.
func gather[K comparable](by map[K]map[syncKey]*forcedSync, key K, s *forcedSync) {
	if by[key] == nil {
		by[key] = make(map[syncKey]*forcedSync)
	}
	by[key][s.key] = s
}

func scatter[K comparable](by map[K]map[syncKey]*forcedSync, key K, s *forcedSync) {
	delete(by[key], s.key)
	if len(by[key]) == 0 {
		delete(by, key)
	}
}
