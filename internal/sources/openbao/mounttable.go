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

// How long the mounts of a namespace are cached, for a path that is in one of them and for one that is in none. This limits the requests that audit
// lines cause.
const (
	maxMountAge   = 5 * time.Minute
	maxNoMountAge = 10 * time.Second
	// maxNamespaces is the maximum number of cached namespaces.
	maxNamespaces = 256
)

// mountTable caches the mounts that the token may see. It is safe for concurrent use.
type mountTable struct {
	client  *client
	refused *refusals

	mu     sync.Mutex
	cached map[string]namespaceMounts // by namespace
}

type namespaceMounts struct {
	asked  time.Time
	byPath map[string]engineMount
}

func newMountTable(c *client) *mountTable {
	return &mountTable{client: c, refused: newRefusals(c.now), cached: map[string]namespaceMounts{}}
}

// find returns the mount of a path in a namespace, or errNoMount. It asks the store if the mount is not cached.
func (m *mountTable) find(ctx context.Context, namespace, path string) (engineMount, error) {
	for _, age := range []time.Duration{maxMountAge, maxNoMountAge} {
		inside, err := m.in(ctx, namespace, age)
		switch {
		case errors.Is(err, errNotThere) && namespace != events.RootNamespace:
			// The root namespace always exists.
			return engineMount{}, fmt.Errorf("%s: no namespace %s: %w", path, namespace, errNoMount)
		case err != nil:
			return engineMount{}, err
		}
		if found, ok := inside.longest(path); ok {
			return found, nil
		}
	}
	return engineMount{}, fmt.Errorf("%s: %w", path, errNoMount)
}

// outdated reports whether find cannot know a mount that was created at the given time, because the mounts of the namespace were requested before
// that, but too recently to be requested again. It returns when find requests them again.
func (m *mountTable) outdated(namespace string, at time.Time) (again time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inside, ok := m.cached[namespace]
	again = inside.asked.Add(maxNoMountAge)
	return again, ok && inside.asked.Before(at) && m.client.now().Before(again)
}

// longest returns the mount with the longest path that contains or equals the given path.
func (n namespaceMounts) longest(path string) (engineMount, bool) {
	for ; path != ""; path = path[:max(strings.LastIndexByte(path, '/'), 0)] {
		if found, ok := n.byPath[path]; ok {
			return found, true
		}
	}
	return engineMount{}, false
}

// in returns the mounts of a namespace, from the cache if they were requested less than age ago.
func (m *mountTable) in(ctx context.Context, namespace string, age time.Duration) (namespaceMounts, error) {
	m.mu.Lock()
	inside, ok := m.cached[namespace]
	m.mu.Unlock()
	if ok && m.client.now().Sub(inside.asked) < age {
		return inside, nil
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
	m.refused.note(namespace, got.asked, err)
	if err != nil {
		return namespaceMounts{}, err
	}
	inside := namespaceMounts{asked: got.asked, byPath: make(map[string]engineMount, len(visible.Secret))}
	for path, description := range visible.Secret {
		path = strings.Trim(path, "/")
		one := engineMount{namespace: namespace, path: path, engine: description.Type}
		if description.Type == events.EngineKV {
			one.version = kvV1
			if description.Options.Version == "2" {
				one.version = kvV2
			}
		}
		inside.byPath[path] = one
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cached) >= maxNamespaces {
		clear(m.cached)
	}
	m.cached[namespace] = inside
	return inside, nil
}

// named returns a mount by its path in a namespace, or by <child namespace>/<path>.
func (m *mountTable) named(ctx context.Context, namespace, name string) (engineMount, error) {
	child, path := namespace, name
	for further := true; further; {
		inside, err := m.in(ctx, child, maxNoMountAge)
		// For a namespace that does not exist, the store answers forbidden or not found.
		if err != nil && (child == namespace || code(err) != http.StatusForbidden && !errors.Is(err, errNotThere)) {
			return engineMount{}, err
		}
		if found, ok := inside.byPath[path]; ok {
			return found, nil
		}
		var segment string
		if segment, path, further = strings.Cut(path, "/"); further {
			child = childNamespace(child, segment)
		}
	}
	return engineMount{}, fmt.Errorf("%s: %w", name, errNoMount)
}

// locate returns the mount that contains a path of a namespace, and the path in it. If the path begins with namespaces, the mount is in the last of
// them. It returns errNoMount if there is none. It asks for a namespace only if there is the one above it, and not again for one that was refused a
// moment ago, so that invented paths cost little.
func (m *mountTable) locate(ctx context.Context, namespace, path string) (in engineMount, inside string, err error) {
	if err = m.refused.of(namespace); err != nil {
		return engineMount{}, "", err
	}
	in, err = m.find(ctx, namespace, path)
	for child := namespace; errors.Is(err, errNoMount); {
		segment, rest, further := strings.Cut(path, "/")
		if !further {
			return engineMount{}, "", err
		}
		child, path = childNamespace(child, segment), rest
		if m.refused.of(child) != nil {
			return engineMount{}, "", err
		}
		if _, denied := m.in(ctx, child, maxMountAge); denied != nil {
			return engineMount{}, "", err
		}
		in, err = m.find(ctx, child, path)
	}
	return in, strings.TrimPrefix(strings.TrimPrefix(path, in.path), "/"), err
}

// refusals remembers for maxNoMountAge which namespaces the token may not see, or are not there. It is for references, of which anybody may write
// many. A line of the audit log may be about a namespace that was created since, so for it the store is asked. It is safe for concurrent use.
type refusals struct {
	now func() time.Time

	mu          sync.Mutex
	byNamespace map[string]refusal
}

type refusal struct {
	asked time.Time
	err   error
}

func newRefusals(now func() time.Time) *refusals {
	return &refusals{now: now, byNamespace: map[string]refusal{}}
}

// note remembers what the store answered about a namespace, if the answer will stay the same. A nil err ends a refusal.
func (r *refusals) note(namespace string, asked time.Time, err error) {
	if errors.Is(err, errNotThere) && namespace != events.RootNamespace {
		err = fmt.Errorf("no namespace %s: %w", namespace, errNoMount)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.byNamespace, namespace)
		return
	}
	if !final(err) {
		return
	}
	if len(r.byNamespace) >= maxNamespaces {
		clear(r.byNamespace)
	}
	r.byNamespace[namespace] = refusal{asked: asked, err: err}
}

// of returns the error of a namespace that was refused a moment ago, or nil.
func (r *refusals) of(namespace string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.byNamespace[namespace]
	if !ok || r.now().Sub(last.asked) >= maxNoMountAge {
		return nil
	}
	return last.err
}

// isPath reports whether the text is a path in a store, without slashes around it, that can be part of a request.
func isPath(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// namespaceHeader returns the name of a namespace in requests, which is empty for the root namespace.
func namespaceHeader(namespace string) string {
	if namespace == events.RootNamespace {
		return ""
	}
	return namespace
}

// childNamespace returns the full path of a namespace inside another one.
func childNamespace(parent, child string) string {
	if parent == events.RootNamespace || parent == "" {
		return child
	}
	return parent + "/" + child
}
