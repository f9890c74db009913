package openbao

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// mount is a secrets engine of a store.
type mount struct {
	namespace string // events.RootNamespace for the root
	path      string // without slashes around it
	engine    string // as the store calls it
	version   int    // kvV1 or kvV2 where the engine is KV
}

// How long what is known of a namespace's mounts is believed: of a path that is in one of them, and of one that is in none.
// It bounds the requests that lines of the audit cause.
const (
	maxMountAge   = 5 * time.Minute
	maxNoMountAge = 10 * time.Second
)

// mounts knows the mounts that the token may see.
type mounts struct {
	client *client

	mu    sync.Mutex
	known map[string]namespaceMounts
}

type namespaceMounts struct {
	asked  time.Time
	mounts map[string]mount // by path
}

// maxNamespaces is how many namespaces are remembered.
const maxNamespaces = 256

// of gives the mount of a path in a namespace, errNoMount where there is none. The store is asked where it is not known.
func (m *mounts) of(ctx context.Context, namespace, path string) (mount, error) {
	known, err := m.in(ctx, namespace, maxMountAge)
	if err != nil {
		return mount{}, err
	}
	if found, ok := known.of(path); ok {
		return found, nil
	}
	if known, err = m.in(ctx, namespace, maxNoMountAge); err != nil {
		return mount{}, err
	}
	if found, ok := known.of(path); ok {
		return found, nil
	}
	return mount{}, fmt.Errorf("%s: %w", path, errNoMount)
}

// of gives the longest mount that the path is in, or is.
func (n namespaceMounts) of(path string) (mount, bool) {
	for ; path != ""; path = path[:max(strings.LastIndexByte(path, '/'), 0)] {
		if found, ok := n.mounts[path]; ok {
			return found, true
		}
	}
	return mount{}, false
}

// in gives the mounts of a namespace as they were at most so long ago.
func (m *mounts) in(ctx context.Context, namespace string, age time.Duration) (namespaceMounts, error) {
	m.mu.Lock()
	known, ok := m.known[namespace]
	m.mu.Unlock()
	if ok && m.client.now().Sub(known.asked) < age {
		return known, nil
	}
	return m.ask(ctx, namespace)
}

// ask asks the store for the mounts of a namespace.
func (m *mounts) ask(ctx context.Context, namespace string) (namespaceMounts, error) {
	var seen struct {
		Secret map[string]struct {
			Type    string `json:"type"`
			Options struct {
				Version string `json:"version"`
			} `json:"options"`
		} `json:"secret"`
	}
	asked, err := m.client.get(ctx, namespace, "sys/internal/ui/mounts", nil, &seen)
	if err != nil {
		return namespaceMounts{}, err
	}
	found := namespaceMounts{asked: asked.asked, mounts: make(map[string]mount, len(seen.Secret))}
	for path, about := range seen.Secret {
		path = strings.Trim(path, "/")
		one := mount{namespace: namespace, path: path, engine: about.Type}
		if about.Type == events.EngineKV {
			one.version = kvV1
			if about.Options.Version == "2" {
				one.version = kvV2
			}
		}
		found.mounts[path] = one
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= maxNamespaces {
		clear(m.known)
	}
	m.known[namespace] = found
	return found, nil
}

// named finds a mount by its path in a namespace, or by <namespace>/<path>.
func (m *mounts) named(ctx context.Context, namespace, name string) (mount, error) {
	inner, path := namespace, name
	for more := true; more; {
		known, err := m.in(ctx, inner, maxNoMountAge)
		// A namespace that is not there is forbidden or not found.
		if err != nil && (inner == namespace || code(err) != http.StatusForbidden && !errors.Is(err, errNotThere)) {
			return mount{}, err
		}
		if found, ok := known.mounts[path]; ok {
			return found, nil
		}
		var next string
		if next, path, more = strings.Cut(path, "/"); more {
			inner = within(inner, next)
		}
	}
	return mount{}, fmt.Errorf("%s: %w", name, errNoMount)
}

// within is a namespace in another one.
func within(outer, inner string) string {
	if outer == events.RootNamespace || outer == "" {
		return inner
	}
	return outer + "/" + inner
}
