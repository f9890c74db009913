package openbao

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// These are the ages of cached mounts of a namespace, for paths in one of them and for paths in none. They limit the requests that audit lines cause.
const (
	maxMountAge   = 5 * time.Minute
	maxNoMountAge = 10 * time.Second
	maxNamespaces = 256 // in the cache
)

type mountName struct{ namespace, mount string }

type engineMount struct {
	namespace string // events.RootNamespace for the root
	path      string // without slashes around it
	engine    string // its name in the store
	isPlain   bool   // KV v1, which has no metadata: only lines about writes show its changes
}

func (m engineMount) name() mountName { return mountName{m.namespace, m.path} }

// enginePlaces contains the paths in a mount. Static roles are rotated at one path, described at another, and readers name a third.
type enginePlaces struct {
	list   string // where the metadata of secrets, or static roles, is listed and read
	secret string // the prefix of a secret's path in the names that readers use
	rotate string
}

var placesOf = map[string]enginePlaces{
	events.EngineKV:       {list: "metadata"},
	events.EngineDatabase: {list: "static-roles", secret: "static-creds/", rotate: "rotate-role"},
	events.EngineLDAP:     {list: "static-role", secret: "static-cred/", rotate: "rotate-role"},
}

// places returns the paths in a mount, or an error if its secrets cannot be read.
func (m engineMount) places() (enginePlaces, error) {
	at, ok := placesOf[m.engine]
	switch {
	case m.isPlain:
		return at, fmt.Errorf("%s: %w", m.path, errUnversioned)
	case !ok:
		return at, fmt.Errorf("%s is of the engine %s: %w", m.path, m.engine, errEngine)
	}
	return at, nil
}

// mountTable caches the mounts that the token may see. It is safe for concurrent use.
type mountTable struct {
	client *client

	mu     sync.Mutex
	cached map[string]namespaceMounts // by namespace
}

type namespaceMounts struct {
	asked  time.Time
	byPath map[string]engineMount
	err    error // the token may not see the namespace, or it does not exist: anyone who writes references can name many such
}

func newMountTable(c *client) *mountTable {
	return &mountTable{client: c, cached: map[string]namespaceMounts{}}
}

// find returns the mount of a path in a namespace, or errNoMount. It asks the store if the mount is not cached.
func (m *mountTable) find(ctx context.Context, namespace, path string) (engineMount, error) {
	for _, age := range []time.Duration{maxMountAge, maxNoMountAge} {
		inside, err := m.in(ctx, namespace, age)
		if err != nil {
			return engineMount{}, err
		}
		// The mount with the longest matching path contains the given path, or equals it.
		for part := path; part != ""; part = part[:max(strings.LastIndexByte(part, '/'), 0)] {
			if found, ok := inside.byPath[part]; ok {
				return found, nil
			}
		}
	}
	return engineMount{}, fmt.Errorf("%s: %w", path, errNoMount)
}

// in returns the mounts of a namespace, from the cache if it is younger than age. A refusal is cached for maxNoMountAge.
func (m *mountTable) in(ctx context.Context, namespace string, age time.Duration) (namespaceMounts, error) {
	m.mu.Lock()
	inside, ok := m.cached[namespace]
	m.mu.Unlock()
	if inside.err != nil {
		age = maxNoMountAge
	}
	if ok && m.client.now().Sub(inside.asked) < age {
		return inside, inside.err
	}
	return m.request(ctx, namespace)
}

// request asks the store for the mounts of a namespace.
func (m *mountTable) request(ctx context.Context, namespace string) (namespaceMounts, error) {
	var visible struct {
		Secret map[string]struct {
			Type    string `json:"type"`
			Options struct {
				Version string `json:"version"`
			} `json:"options"`
		} `json:"secret"`
	}
	got, err := m.client.get(ctx, namespace, "sys/internal/ui/mounts", nil, &visible)
	if errors.Is(err, errNotThere) && namespace != events.RootNamespace { // The root namespace always exists.
		err = fmt.Errorf("no namespace %s: %w", namespace, errNoMount)
	}
	if err != nil && !final(err) {
		return namespaceMounts{}, err
	}
	inside := namespaceMounts{asked: got.asked, byPath: make(map[string]engineMount, len(visible.Secret)), err: err}
	for path, description := range visible.Secret {
		path = strings.Trim(path, "/")
		one := engineMount{namespace: namespace, path: path, engine: description.Type}
		one.isPlain = description.Type == events.EngineKV && description.Options.Version != "2"
		inside.byPath[path] = one
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cached) >= maxNamespaces {
		maps.DeleteFunc(m.cached, func(_ string, other namespaceMounts) bool { return other.err != nil })
	}
	if len(m.cached) >= maxNamespaces {
		clear(m.cached)
	}
	m.cached[namespace] = inside
	return inside, err
}

// named returns a mount by its path in a namespace, or by <child namespace>/<path>. It does not use the cache, because the secrets of a removed mount
// would look deleted.
func (m *mountTable) named(ctx context.Context, namespace, name string) (engineMount, error) {
	in, inside, err := m.locate(ctx, namespace, name, maxNoMountAge)
	if err == nil && inside != "" {
		err = fmt.Errorf("%s: %w", name, errNoMount)
	}
	return in, err
}

// locate returns the mount that contains a path of a namespace, and the path in it, from mounts of at most that age, or errNoMount. A path may begin
// with namespaces. It asks for a namespace only if its parent exists, so that invented paths cost little.
func (m *mountTable) locate(ctx context.Context, namespace, path string, age time.Duration) (in engineMount, inside string, err error) {
	if _, err = m.in(ctx, namespace, age); err != nil {
		return engineMount{}, "", err
	}
	in, err = m.find(ctx, namespace, path)
	for child := namespace; errors.Is(err, errNoMount); {
		segment, rest, further := strings.Cut(path, "/")
		if !further {
			return engineMount{}, "", err
		}
		child, path = childNamespace(child, segment), rest
		if _, denied := m.in(ctx, child, age); denied != nil {
			return engineMount{}, "", err
		}
		in, err = m.find(ctx, child, path)
	}
	return in, strings.TrimPrefix(strings.TrimPrefix(path, in.path), "/"), err
}

// isPath reports whether the text is a valid path in a store, without slashes around it, for a request.
func isPath(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// childNamespace returns the full path of a namespace inside another one.
func childNamespace(parent, child string) string {
	if parent == events.RootNamespace || parent == "" {
		return child
	}
	return parent + "/" + child
}
