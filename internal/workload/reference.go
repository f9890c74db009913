package workload

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// maxReferences is how many sources count that one workload reads. A variable may name tens of thousands of secrets in a store.
const maxReferences = 1000

// Reference is what a pod spec reads of one source: all of its uses, merged.
type Reference struct {
	Kind events.Kind
	Name string
	// Keys are the data keys that the pods read, sorted and without duplicates. Nil means all of them, including keys added later.
	Keys []string
	// Required are the data keys without which the pods do not start, sorted and without duplicates: the keys named by uses that are not
	// optional. A subPath requires none, and neither does a use of the whole source.
	Required []string
	// Optional means that pods start without the source. It is false if one use is not optional: then the pods have waited for the
	// source, and have read it as it was created.
	Optional bool
	// ByPull means that the source is used only to pull images. Each pull reads it again.
	ByPull bool
}

// referenceTo returns the reference to a source among those of a workload in a namespace, or nil if there is none.
func referenceTo(source events.Source, refs []Reference, namespace string) *Reference {
	for i := range refs {
		if ref := &refs[i]; RefersTo(ref.Kind, ref.Name, source) && SourceNamed(ref.Kind, namespace, "").Namespace == source.Namespace {
			return ref
		}
	}
	return nil
}

// isLike reports whether both concern a workload in the same way.
func (r Reference) isLike(other Reference) bool {
	return r.Kind == other.Kind && r.Name == other.Name && r.ByPull == other.ByPull &&
		(r.Keys == nil) == (other.Keys == nil) && slices.Equal(r.Keys, other.Keys)
}

// limited returns the first references, at most maxReferences.
func limited(list []Reference) []Reference {
	if len(list) <= maxReferences {
		return list
	}
	return slices.Clone(list[:maxReferences])
}
