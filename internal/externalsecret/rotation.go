package externalsecret

import (
	"slices"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// Rotation is a change of a secret in a store. ExternalSecret.Reads compares it with an ExternalSecret.
type Rotation struct {
	path    events.StorePath
	servers []string
	keys    []any
	kv      string // the mount, preceded by the namespace, if its engine is KV
	version int64
	write   bool // a new version was, or may have been, written; otherwise, existing versions were changed
	fresh   bool // the readable content probably differs from that of the last read
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
	// A poll shows an undeletion only in the revision.
	isUndeletion := change.Store.Operation == "undelete" || strings.Contains(change.Store.Revision, "/undeleted/")
	r := Rotation{path: name, version: change.Store.Version, write: !gone, fresh: !gone && !isUndeletion}
	switch change.Store.Operation {
	case "delete", "undelete", "destroy": // These operations change existing versions.
		r.write = false
	}
	for _, server := range change.Store.Servers {
		r.servers = append(r.servers, events.StoreAddress(server))
	}
	mount := qualified(name.Namespace, name.Mount)
	r.keys = []any{Key{api: mount, Below: true}}
	// Only version 2 of the engine counts versions. An event without a version may be of either version.
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

// NewContent reports whether a read probably returns new content. An undeletion only restores old content.
func (r Rotation) NewContent() bool { return r.fresh }

// isAt reports whether the server is an address of the store. If the event names no address, any server may be.
func (r Rotation) isAt(server string) bool {
	return len(r.servers) == 0 || slices.Contains(r.servers, server)
}

// showsKV reports whether the place is in the mount of the rotation, and the mount is KV.
func (r Rotation) showsKV(p Place) bool {
	return r.kv != "" && r.isAt(p.Server) && strings.HasPrefix(p.api, r.kv+"/")
}

// covers reports whether the place contains the rotated secret, if both are in the same store.
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
