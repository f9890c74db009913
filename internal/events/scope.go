package events

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// Scope says which sources of a cluster a watcher watches.
type Scope struct {
	// Kinds lists the kinds of the sources.
	Kinds []Kind `json:"kinds"`
	// Namespaces lists the namespaces of the sources. Empty means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// IgnoredNamespaces lists namespaces whose sources are left out.
	IgnoredNamespaces []string `json:"ignoredNamespaces,omitempty"`
	// NamespaceSelector and Selector select namespaces and sources by their labels. Empty means all.
	NamespaceSelector string `json:"namespaceSelector,omitempty"`
	Selector          string `json:"selector,omitempty"`
}

// Covers reports whether a source is in the scope, judging by its name.
func (s Scope) Covers(source Source) bool {
	if !slices.Contains(s.Kinds, source.Kind) || slices.Contains(s.IgnoredNamespaces, source.Namespace) {
		return false
	}
	return len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, source.Namespace)
}

// digest returns a text for a subject. It is different for different scopes.
func (s Scope) digest() string {
	var text strings.Builder
	for _, kind := range s.Kinds {
		text.WriteString(string(kind) + "\n")
	}
	text.WriteString("\n" + strings.Join(s.Namespaces, "\n") + "\n\n" + s.NamespaceSelector + "\n" + s.Selector)
	if len(s.IgnoredNamespaces) > 0 {
		text.WriteString("\n\n" + strings.Join(s.IgnoredNamespaces, "\n"))
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:8])
}

func (s Scope) validate() error {
	switch {
	case len(s.Kinds) == 0:
		return errors.New("the scope has no kinds")
	case slices.ContainsFunc(s.Kinds, func(kind Kind) bool { return !isWord(string(kind)) }):
		return errors.New("a kind of the scope is not a word")
	case slices.ContainsFunc(slices.Concat(s.Namespaces, s.IgnoredNamespaces), func(namespace string) bool { return !isLabel(namespace) }):
		return errors.New("a namespace of the scope is not a DNS label")
	}
	return nil
}
