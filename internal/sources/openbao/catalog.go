package openbao

// catalog looks up which secrets of a store are known to exist.
type catalog struct {
	store string
	known func(store, namespace, mount string) []string // nil if nothing is known
}

// paths returns the known paths in a mount. That iterates over every source, so an audit line must never cause it.
func (c catalog) paths(namespace, mount string) []string {
	if c.known == nil {
		return nil
	}
	return c.known(c.store, namespace, mount)
}
