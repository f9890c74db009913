package openbao

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// State is what has become of a secret in a store. The zero State is none.
type State uint8

// The states of a secret.
const (
	// Live is a secret that can be read.
	Live State = iota + 1
	// Deleted is a secret whose current version is deleted, and can be undeleted.
	Deleted
	// Destroyed is a secret whose current version is destroyed for good.
	Destroyed
	// Gone is a secret that is not there any more, not even its metadata.
	Gone
)

func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Deleted:
		return "deleted"
	case Destroyed:
		return "destroyed"
	case Gone:
		return "gone"
	}
	return "unknown"
}

// Observation is what was seen of one secret in a store. The same state may be seen several times and by several ways, and a
// state that was read may be seen after a later one: ReadAt tells.
type Observation struct {
	// Path names the secret. It is valid: Path.Source() can be read back.
	Path events.StorePath
	// Servers are the address and the aliases of the store, in the form of events.StoreAddress.
	Servers []string
	// Engine is events.EngineKV, events.EngineDatabase or events.EngineLDAP.
	Engine string
	// Version is the current version in KV v2. Zero where the engine counts none, and where nobody could ask for it.
	Version int64
	// State is what has become of the secret.
	State State
	// At is the store's time of the state: when the version was created or deleted, when the role's password was rotated, or
	// the time of the audit line where nothing else tells. Zero where the store does not tell it.
	At time.Time
	// ReadAt is our time just before the store was asked, so that the state is at least as new. Zero where an audit line told
	// everything by itself.
	ReadAt time.Time
	// Request is the id of the store's request where no version tells the state apart from others: in KV v1, and in stores
	// that cannot be asked. Empty otherwise.
	Request string
	// Operation is what was done: create, update, patch, delete, undelete, destroy or rotate. Empty where it was found by polling.
	Operation string
	// By is the display name of who did it. Empty where it was found by polling.
	By string
	// Trace is the trace of who did it, where the store audits the traceparent header and it is valid.
	Trace events.TraceContext
	// Received is our time of getting the audit line or the answer.
	Received time.Time
}

// Sink takes observations, from several goroutines at once. It must not block; false means that it has no room, and the observation is offered again soon.
type Sink func(Observation) bool
