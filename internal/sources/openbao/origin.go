package openbao

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// origin makes the observations of one store.
type origin struct {
	store   string   // the name of the store
	servers []string // its addresses, in the form of events.StoreAddress
}

// ofEntry returns the observation that the line of a write in KV v1 is.
func (g origin) ofEntry(e *entry, in engineMount, c change) Observation {
	o := Observation{
		Path:    events.StorePath{Store: g.store, Namespace: in.namespace, Mount: in.path, Path: c.path},
		Servers: g.servers, Engine: in.engine, State: c.state, Received: e.received, Request: e.request,
	}
	o.attribute(e, c)
	return o
}

// ofReply returns an observation of a path that the store was asked about, without its state.
func (g origin) ofReply(in engineMount, path string, got reply) Observation {
	return Observation{
		Path:    events.StorePath{Store: g.store, Namespace: in.namespace, Mount: in.path, Path: path},
		Servers: g.servers, Engine: in.engine, ReadAt: got.asked, Received: got.received,
	}
}

// attribute records who made the change, and how, and when if the store does not say.
func (o *Observation) attribute(e *entry, c change) {
	o.Operation, o.By, o.Trace = c.operation, e.by, e.trace
	if o.At.IsZero() {
		o.At = e.at
	}
}

// engineMount is a mounted secrets engine.
type engineMount struct {
	namespace string // events.RootNamespace for the root
	path      string // without slashes around it
	engine    string // as the store calls it
	version   int    // kvV1 or kvV2 if the engine is KV
}

// isPlain reports whether the mount is KV v1, which has no metadata: only the lines about writes show its changes.
func (m engineMount) isPlain() bool { return m.engine == events.EngineKV && m.version == kvV1 }

// reply is when a request was made and answered.
type reply struct {
	asked, received time.Time // by our clock
	date            time.Time // the latest that the store's clock can have been when it answered
	warned          bool      // the answer has warnings or errors
}
