package openbao

import "github.com/keyturn/keyturn/internal/events"

// catalog looks up which secrets of a store are known to exist.
type catalog struct {
	store string
	known func(store, namespace, mount string) []string // nil if nothing is known
	// recorded returns the version of the last event of a path, and false if there is none. It is nil if that is unknown.
	recorded func(path events.StorePath) (version int64, ok bool)
}

// maxLeap is how many versions may be written between two events before an audit line is checked with the store.
const maxLeap = 1000

// leaps reports whether a version is too far from the last known one to be taken from an audit line.
func (c catalog) leaps(path events.StorePath, version int64) bool {
	if c.recorded == nil {
		return false
	}
	path.Store = c.store
	last, _ := c.recorded(path)
	return version-last > maxLeap
}

// isNew reports whether the path certainly has no event.
func (c catalog) isNew(path events.StorePath) bool {
	if c.recorded == nil {
		return false
	}
	path.Store = c.store
	_, ok := c.recorded(path)
	return !ok
}

// paths returns the known paths in a mount. That iterates over every source, so an audit line must never cause it.
func (c catalog) paths(namespace, mount string) []string {
	if c.known == nil {
		return nil
	}
	return c.known(c.store, namespace, mount)
}
