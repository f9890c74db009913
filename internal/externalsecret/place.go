package externalsecret

import (
	"regexp"

	"github.com/keyturn/keyturn/internal/events"
)

// Place is a path in a store that an ExternalSecret reads.
type Place struct {
	// Server is the address of the store, in the form of events.StoreAddress.
	Server string
	// Path is the path. The name of its store is empty: Server identifies it.
	Path events.StorePath
	// Below means that secrets below the path are read, not the path itself. The path in the mount is empty for the whole
	// mount.
	Below bool

	// api is the path in the store's API, preceded by the namespace. With Below it is the path of the mount.
	api string
	// v1 means that the engine is read as KV version 1.
	v1 bool
	// version is the pinned version. Empty means the current one.
	version string

	// name must match prefix followed by the path of a secret below Path. If it is nil, every secret matches.
	name   *regexp.Regexp
	prefix string
	// flat means that only secrets directly below the path are found.
	flat bool
}

// Key is the index key of a Place.
type Key struct {
	api   string
	below bool
}

// Key returns the index key of the place. Every Rotation that concerns the place has it among its keys.
func (p Place) Key() Key { return Key{api: p.api, below: p.Below} }
