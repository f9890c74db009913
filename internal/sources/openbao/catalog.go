package openbao

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// catalog looks up which secrets of a store are known to exist.
type catalog struct {
	store string
	known func(store, namespace, mount string) []string // nil: nothing is known
}

// paths returns the known paths in a mount.
func (c catalog) paths(namespace, mount string) []string {
	if c.known == nil {
		return nil
	}
	return c.known(c.store, namespace, mount)
}

// rulesOut reports whether the path is certainly not known.
func (c catalog) rulesOut(path events.StorePath) bool {
	return c.known != nil && !slices.Contains(c.paths(path.Namespace, path.Mount), path.Path)
}
