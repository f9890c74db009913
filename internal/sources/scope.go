package sources

import "github.com/keyturn/keyturn/internal/kube"

// scope is the set of namespaces whose sources are watched.
type scope struct {
	// names is empty for all namespaces, except the ignored ones.
	names, ignored []string
	selected       *namespaceFilter
}

// listed returns the namespaces that are listed and watched one by one.
func (s scope) listed() []string { return kube.Listed(s.names) }

// includes reports whether the sources of a namespace are watched.
func (s scope) includes(namespace string) bool {
	return s.lists(namespace) && s.selected.matches(namespace)
}

// lists reports whether the objects of a namespace are cached. They are even if the namespace is not selected.
func (s scope) lists(namespace string) bool {
	return kube.Includes(s.names, s.ignored, namespace)
}
