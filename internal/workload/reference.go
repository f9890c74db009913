package workload

import "github.com/keyturn/keyturn/internal/events"

// Reference is what a pod spec reads of one source: all of its uses, merged.
type Reference struct {
	Kind events.Kind
	Name string
	// Keys are the data keys that the pods read, sorted and without duplicates. Nil: all of them, also those that come later.
	Keys []string
	// Required are the data keys without which the pods do not start, sorted and without duplicates: those that a use names which is not
	// optional. A subPath requires none, and neither does a use of the whole source.
	Required []string
	// Optional means that pods start without the source. One use that is not optional makes it false: then the pods have waited for the
	// source, and have read it as it was created.
	Optional bool
	// ByPull means that the source is used to pull images and for nothing else. Each pull reads it anew.
	ByPull bool
}
