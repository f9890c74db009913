package externalsecret

import (
	"slices"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// Rotation is a change of a secret in a store. ExternalSecret.Reads matches it with what an ExternalSecret reads.
type Rotation struct {
	path    events.StorePath
	servers []string
	keys    []any
	kv      string // the mount, preceded by the namespace, if its engine is KV
	version int64
	write   bool // a new version was written, or may have been; otherwise existing versions were changed
	fresh   bool // what can be read now probably differs from what was read last
}

// RotationOf reads the event of a secret that was rotated or deleted. It returns false for any other event.
func RotationOf(change events.Change) (Rotation, bool) {
	gone := change.Verb == events.VerbDeleted
	if change.Source.Kind != events.KindOpenBao || change.Store == nil || change.Verb != events.VerbRotated && !gone {
		return Rotation{}, false
	}
	name, err := change.Source.StorePath()
	if err != nil {
		return Rotation{}, false
	}
	// A poll shows an undeletion in the revision only.
	isUndeletion := change.Store.Operation == "undelete" || strings.Contains(change.Store.Revision, "/undeleted/")
	r := Rotation{path: name, version: change.Store.Version, write: !gone, fresh: !gone && !isUndeletion}
	switch change.Store.Operation {
	case "delete", "undelete", "destroy": // They change existing versions.
		r.write = false
	}
	for _, server := range change.Store.Servers {
		r.servers = append(r.servers, events.StoreAddress(server))
	}
	mount := qualified(name.Namespace, name.Mount)
	r.keys = []any{Key{api: mount, Below: true}}
	// Only version 2 of the engine counts versions. An event without a version may be of either.
	if change.Store.Engine == events.EngineKV {
		r.kv = mount
		r.keys = append(r.keys, Key{api: mount + "/data/" + name.Path})
	}
	if change.Store.Engine != events.EngineKV || r.version == 0 {
		r.keys = append(r.keys, Key{api: mount + "/" + name.Path})
	}
	return r, true
}

// Keys returns the Keys of the places that the rotation may affect.
func (r Rotation) Keys() []any { return r.keys }

// NewContent reports whether there is something to read that probably differs from what was read last. An undeletion only brings that back.
func (r Rotation) NewContent() bool { return r.fresh }

// isAt reports whether the server is an address of the store. If the event names no address, any server may be.
func (r Rotation) isAt(server string) bool {
	return len(r.servers) == 0 || slices.Contains(r.servers, server)
}

// showsKV reports whether the place is in the mount of the rotation, and that is of KV.
func (r Rotation) showsKV(p Place) bool {
	return r.kv != "" && r.isAt(p.Server) && strings.HasPrefix(p.api, r.kv+"/")
}

// covers reports whether the place has what the rotation changed, provided that both are in the same store.
func (r Rotation) covers(p Place) bool {
	switch {
	case !slices.Contains(r.keys, any(p.Key)):
		return false
	case !p.Below:
		// Another version may be pinned.
		return p.version == "" || !r.write || r.version == 0 || p.version == strconv.FormatInt(r.version, 10)
	case p.v1 && r.version > 0:
		return false // KV version 1 has no versions
	}
	rest := r.path.Path
	if p.Path.Path != "" {
		var within bool
		if rest, within = strings.CutPrefix(rest, p.Path.Path+"/"); !within {
			return false
		}
	}
	if p.flat && strings.Contains(rest, "/") {
		return false
	}
	return p.name == nil || p.name.MatchString(p.prefix+rest)
}
