package workload

import (
	"cmp"
	"fmt"

	"github.com/keyturn/keyturn/internal/events"
)

// maxAnnotation is the maximum length of an annotation in bytes. Kubernetes allows 256 KiB for all annotations of an object.
const maxAnnotation = 16 << 10

// rule is one item of an annotation.
type rule struct {
	reason     WantReason
	annotation string
	item       string
	// kind is the kind of source. Empty means every kind.
	kind events.Kind
	// store is the name of a secret store. Empty means every store.
	store string
	// name matches the names of sources. Nil means every name.
	name matcher
	// key is a data key of the source. Empty means everything that the pods read of the source.
	key string
	// granted says which secrets in stores may be named.
	granted granted
	// whole means that every key counts, whatever the pods read. Such a rule names sources.
	whole bool
}

// compare orders rules as Wants tries them: by reason, and with the same reason those that include every key first.
func (r rule) compare(other rule) int {
	switch {
	case r.reason != other.reason:
		return cmp.Compare(r.reason, other.reason)
	case r.whole == other.whole:
		return 0
	case r.whole:
		return -1
	}
	return 1
}

// covers reports whether the rule is about a source.
func (r *rule) covers(source events.Source) bool {
	return (r.kind == "" || r.kind == source.Kind) && (r.store == "" || isIn(r.store, source)) && (r.name == nil || isCalled(source, r.name))
}

// rules collects the rules in the annotations of a workload, and the errors.
type rules struct {
	include []rule
	exclude []rule
	errs    []error
}

func (r *rules) fail(annotation, item, problem string) {
	r.errs = append(r.errs, &itemError{annotation: annotation, item: item, problem: problem})
}

// fits reports whether an annotation is short enough to be read.
func (r *rules) fits(annotation, text string) bool {
	if len(text) <= maxAnnotation {
		return true
	}
	r.fail(annotation, "", fmt.Sprintf("is %d bytes long, want at most %d", len(text), maxAnnotation))
	return false
}

// itemError reports what is wrong with one item of an annotation, and what is allowed.
type itemError struct {
	// annotation is the key of the annotation.
	annotation string
	// item is the item as it was written. It is empty if the whole annotation is wrong.
	item string
	// problem is what is wrong, and what is allowed.
	problem string
}

func (e *itemError) Error() string {
	if e.item == "" {
		return e.annotation + ": " + e.problem
	}
	return fmt.Sprintf("%s: item %.100q: %s", e.annotation, e.item, e.problem)
}
