package externalsecret

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// Stores returns a SecretStore by its name, or a ClusterSecretStore by its name without a namespace. It returns nil if there
// is none.
type Stores func(types.NamespacedName) *Store

// Place is a path in a store that an ExternalSecret reads.
type Place struct {
	// Server is the address of the store, in the form of events.StoreAddress.
	Server string
	// Path is the path. The name of its store is empty: Server identifies it.
	Path events.StorePath
	// Below means that secrets below the path are read, not the path itself. The path in the mount is empty for the whole
	// mount.
	Below bool

	// api is the path in the store's API, with the namespace in front. With Below it is the path of the mount.
	api string
	// v1 means that the engine is read as KV version 1.
	v1 bool
	// version is the pinned version. Empty: the current one.
	version string

	// name must match prefix followed by the path of a secret below Path. Nil: every secret matches.
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

// Places returns what the ExternalSecret reads in Vault and OpenBao, as far as its stores are known, in the order of its
// spec.
func (es *ExternalSecret) Places(stores Stores) []Place {
	var places []Place
	for i := range es.references {
		ref := &es.references[i]
		store := stores(ref.store)
		if store == nil || store.provider == nil || !store.serves(es.Namespace) {
			continue
		}
		read := store.provider.named
		if ref.find != nil {
			read = store.provider.found
		}
		if place, ok := read(ref); ok {
			place.Server = store.provider.server
			places = append(places, place)
		}
	}
	return places
}

// Reads reports whether a sync of the ExternalSecret would read what the rotation changed.
func (es *ExternalSecret) Reads(stores Stores, r Rotation) bool {
	for _, place := range es.Places(stores) {
		if place.concerns(r) {
			return true
		}
	}
	return false
}

func (p Place) concerns(r Rotation) bool {
	switch {
	case !r.isAt(p.Server) || !slices.Contains(r.keys, p.Key()):
		return false
	case !p.Below:
		return r.touches(p.version)
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
