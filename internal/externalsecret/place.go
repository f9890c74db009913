package externalsecret

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// Stores gives a SecretStore by its name, and a ClusterSecretStore by its name without a namespace; nil where there is
// none.
type Stores func(types.NamespacedName) *Store

// Place is where in a store an ExternalSecret reads.
type Place struct {
	// Server is the address of the store, in the form of events.StoreAddress.
	Server string
	// Path is what is read. The name of its store is empty: Server tells which it is.
	Path events.StorePath
	// Below says that not the path is read, but secrets that are somewhere below it. The path in the mount is empty where
	// that is anywhere.
	Below bool

	// api is the path in the API of the store, with the namespace in front. With Below it is that of the mount.
	api string
	// v1 says that the engine is read as one of version 1.
	v1 bool
	// version is the one that is pinned.
	version string

	// name is what the name of a secret is to match, with prefix in front of what it has behind the path. Nil: any does.
	name   *regexp.Regexp
	prefix string
	// flat says that only what is right below the path is found.
	flat bool
}

// Key is what a Place is found by.
type Key struct {
	api   string
	below bool
}

// Key is among the keys of every Rotation that concerns the place.
func (p Place) Key() Key { return Key{api: p.api, below: p.Below} }

// Places lists where the ExternalSecret reads in Vault and OpenBao, as far as its stores are known. It is in the order of
// its spec.
func (es *ExternalSecret) Places(stores Stores) []Place {
	var places []Place
	for i := range es.references {
		ref := &es.references[i]
		store := stores(ref.store)
		if store == nil || store.provider == nil || !store.Serves(es.Namespace) {
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

// Reads tells whether a sync of the ExternalSecret would read what the rotation made.
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
		return false // an engine of version 1 counts none
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
