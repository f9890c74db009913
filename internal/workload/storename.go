package workload

import (
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// Spellings returns the names by which workloads refer to a source: one, or two for a secret in a store.
func Spellings(source events.Source) []string {
	if source.Kind != events.KindOpenBao {
		return []string{source.Name}
	}
	path, err := source.StorePath()
	if err != nil {
		return nil
	}
	full := path.Full()
	mount := strings.TrimSuffix(full, path.Path)
	return []string{full, mount + "data/" + path.Path}
}

// RefersTo reports whether a reference, or a name in an annotation, refers to the source.
func RefersTo(kind events.Kind, name string, source events.Source) bool {
	if kind != events.KindOpenBao {
		return kind == source.Kind && name == source.Name
	}
	return kind == source.Kind && isCalled(source, exactly(name))
}

// isCalled reports whether one of the names of a source matches. It is called for each reference of each dependent of each event, so it
// allocates no list for a source with only one name.
func isCalled(source events.Source, name matcher) bool {
	if source.Kind != events.KindOpenBao {
		return name.match(source.Name)
	}
	return slices.ContainsFunc(Spellings(source), name.match)
}

// isIn reports whether a source is a secret in the store.
func isIn(store string, source events.Source) bool {
	name, _, _ := strings.Cut(source.Name, "/")
	return source.Kind == events.KindOpenBao && name == store
}

// SourceNamed returns the source, as it is in the index, that a name in a workload of a namespace refers to.
func SourceNamed(kind events.Kind, namespace, name string) events.Source {
	if kind == events.KindOpenBao {
		namespace = ""
	}
	return events.Source{Kind: kind, Namespace: namespace, Name: name}
}
