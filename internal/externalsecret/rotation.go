package externalsecret

import (
	"slices"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// Rotation is a change of a secret in a store, as it is asked whom it concerns.
type Rotation struct {
	path    events.StorePath
	servers []string
	keys    []Key
	version int64
	// write says that a new version was written, or may have been. Otherwise something happened to versions that were there.
	write bool
}

// The operations, as events name them, that do something to versions that were there.
const (
	operationDelete   = "delete"
	operationUndelete = "undelete"
	operationDestroy  = "destroy"
)

// RotationOf reads the event of a secret that was rotated or deleted. It is false for other events.
func RotationOf(change events.Change) (Rotation, bool) {
	rotated := change.Verb == events.VerbRotated || change.Verb == events.VerbDeleted
	if change.Source.Kind != events.KindOpenBao || change.Store == nil || !rotated {
		return Rotation{}, false
	}
	name, err := change.Source.StorePath()
	if err != nil {
		return Rotation{}, false
	}
	r := Rotation{path: name, version: change.Store.Version, write: change.Verb == events.VerbRotated}
	switch change.Store.Operation {
	case operationDelete, operationUndelete, operationDestroy:
		r.write = false
	}
	for _, server := range change.Store.Servers {
		r.servers = append(r.servers, address(server))
	}
	mount := qualified(name.Namespace, name.Mount)
	r.keys = []Key{{api: mount, below: true}}
	// Only version 2 of the engine counts versions. Where none is told it may be either.
	if change.Store.Engine == events.EngineKV {
		r.keys = append(r.keys, Key{api: mount + "/data/" + name.Path})
	}
	if change.Store.Engine != events.EngineKV || r.version == 0 {
		r.keys = append(r.keys, Key{api: mount + "/" + name.Path})
	}
	// What is rotated is a role, and what is read are its credentials: static-creds/<role> for static-roles/<role>.
	if role, ok := strings.CutPrefix(name.Path, "static-role"); ok && change.Store.Engine != events.EngineKV {
		r.keys = append(r.keys, Key{api: mount + "/static-cred" + role})
	}
	return r, true
}

// Keys are those of the places that the rotation may concern.
func (r Rotation) Keys() []Key { return r.keys }

// NewVersion tells whether the rotation has written a version, whose content is probably not that of the one before.
func (r Rotation) NewVersion() bool { return r.write && r.version > 0 }

// isAt tells whether the server is the one of the store. Where nobody knows the addresses of the store any server may be.
func (r Rotation) isAt(server string) bool {
	return len(r.servers) == 0 || slices.Contains(r.servers, server)
}

// touches tells whether what a reference reads can be another by the rotation. A reference to one version stays as it is
// when another is written.
func (r Rotation) touches(pinned string) bool {
	return pinned == "" || !r.write || r.version == 0 || pinned == strconv.FormatInt(r.version, 10)
}
