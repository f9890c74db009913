package externalsecret

import (
	"cmp"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// Place is a path in a store that an ExternalSecret reads.
type Place struct {
	Key
	Server string // the address of the store, in the form of events.StoreAddress
	// Path is the path. The name of its store is empty: Server identifies it.
	Path events.StorePath

	v1      bool   // the engine is read as KV version 1
	version string // the pinned version; empty means the current one

	// name must match prefix followed by the path of a secret below Path. If it is nil, every secret matches.
	name   *regexp.Regexp
	prefix string
	flat   bool // only secrets directly below the path are found
}

// Key is the index key of a Place. The keys of every Rotation that concerns the place include it.
type Key struct {
	// Below means that the place reads secrets below the path, not the path itself. The path in the mount is empty for the whole mount.
	Below bool
	api   string // the path in the store's API, preceded by the namespace; with Below, that of the mount
}

// provider is the configuration of one of the two providers that read Vault and OpenBao.
type provider struct {
	server    string
	namespace string
	mount     *string // nil if the keys include the mount
	v1        bool    // the engine is read as KV version 1
	openBao   bool    // the provider openBao, which handles keys and searches differently
}

// defaultMount is the default mount of the provider openBao.
const defaultMount = "kv"

// reference is an entry of data or dataFrom of an ExternalSecret.
type reference struct {
	store    types.NamespacedName
	key      string
	version  string // pinned; empty means the latest
	metadata bool   // the metadata is read instead of the data
	find     *find  // nil if the reference names a key
}

// find selects secrets by name or by tags.
type find struct {
	path *string
	// name is nil if secrets are selected by tags, or by an expression that is too large to keep. Then any secret may match.
	name *regexp.Regexp
}

// named returns the place of a key.
func (p *provider) named(ref *reference) (Place, bool) {
	api := p.vaultPath(ref.key)
	if p.openBao || ref.metadata && p.mount != nil {
		api = *p.mount + p.data() + ref.key // Here the key is always relative to the mount.
	}
	api = clean(api)
	mount, rest := p.split(api)
	if mount == "" || rest == "" {
		return Place{}, false
	}
	return Place{
		Key:  Key{api: clean(qualified(p.storeNamespace(), api))},
		Path: events.StorePath{Namespace: p.storeNamespace(), Mount: mount, Path: rest}, v1: p.v1, version: ref.version,
	}, true
}

// vaultPath returns the API path that the provider vault reads for a key. A key may repeat the mount, followed by data/.
func (p *provider) vaultPath(key string) string {
	if p.mount != nil {
		if rest, repeated := strings.CutPrefix(key, *p.mount+"/"); repeated {
			key = rest
			if !p.v1 {
				key = strings.TrimPrefix(key, "data/")
			}
		}
		return *p.mount + p.data() + key
	}
	if p.v1 || strings.Contains(key, "/data/") {
		return key
	}
	mount, rest, _ := strings.Cut(key, "/")
	return mount + p.data() + rest
}

// data returns the separator between the mount and the path of a secret.
func (p *provider) data() string {
	if p.v1 {
		return "/"
	}
	return "/data/"
}

// split splits an API path into the mount and the path in it. If the mount is unknown, it is the first segment.
func (p *provider) split(api string) (mount, rest string) {
	if p.mount != nil {
		mount = clean(*p.mount)
		rest, _ = strings.CutPrefix(api, mount+p.data())
		return mount, rest
	}
	mount, rest, _ = strings.Cut(api, p.data())
	return mount, rest
}

// found returns the place of a search.
func (p *provider) found(ref *reference) (Place, bool) {
	// The provider puts the search path before the names that it matches.
	search := ""
	if ref.find.path != nil {
		search = *ref.find.path + "/"
	}
	var mount, within string
	switch {
	case p.mount != nil:
		mount, within = *p.mount, search
	case p.v1:
		return Place{}, false // the provider cannot search here
	default:
		var named bool
		if mount, within, named = strings.Cut(search, "/data/"); !named {
			return Place{}, false // the provider refuses this search
		}
	}
	place := Place{
		Key:  Key{Below: true, api: clean(qualified(p.storeNamespace(), mount))},
		Path: events.StorePath{Namespace: p.storeNamespace(), Mount: clean(mount), Path: clean(within)},
		v1:   p.v1, name: ref.find.name, prefix: search,
	}
	if p.openBao {
		// The provider matches names directly in the folder, without their path.
		place.prefix, place.flat = "", true
	}
	return place, place.api != ""
}

func (p *provider) storeNamespace() string { return cmp.Or(clean(p.namespace), events.RootNamespace) }

// qualified returns a path preceded by its namespace. A store accepts a namespace in a header or in the path; this form makes both comparable.
func qualified(namespace, text string) string {
	if namespace == events.RootNamespace {
		return text
	}
	return namespace + "/" + text
}

// clean normalizes a path like the store's client: without empty segments and outer slashes.
func clean(text string) string {
	return strings.TrimPrefix(path.Clean("/"+text), "/")
}
