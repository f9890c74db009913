package workload

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// maxAnnotation is the maximum length of an annotation in bytes. Kubernetes allows 256 KiB for all annotations of an object.
const maxAnnotation = 16 << 10

// maxItems is the maximum number of items in an annotation. Each takes some 200 bytes of memory.
const maxItems = 1000

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
	// key is a data key of the source. Empty means all keys that the pods read.
	key string
	// granted contains the secrets in stores that may be named.
	granted granted
	// whole means that every key counts, regardless of the keys that the pods read. Such a rule names sources.
	whole bool
}

// compare orders rules as Wants tries them: by reason, and for equal reasons those with every key first.
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

// isLike reports whether both rules come from the same item.
func (r rule) isLike(other rule) bool {
	return r.reason == other.reason && r.annotation == other.annotation && r.item == other.item && r.kind == other.kind
}

// covers reports whether the rule is about a source.
func (r *rule) covers(source events.Source) bool {
	return (r.kind == "" || r.kind == source.Kind) && (r.store == "" || isIn(r.store, source)) && (r.name == nil || isCalled(source, r.name))
}

// rules collects the rules in the annotations of a workload, and the errors.
type rules struct {
	OptIn
	itemErrors
}

// fits reports whether an annotation is within the limits.
func (r *rules) fits(annotation, text string) bool {
	if len(text) > maxAnnotation {
		r.fail(annotation, "", fmt.Sprintf("is %d bytes long, want at most %d", len(text), maxAnnotation))
		return false
	}
	if items := strings.Count(text, ",") + 1; items > maxItems {
		r.fail(annotation, "", fmt.Sprintf("has %d items, want at most %d", items, maxItems))
		return false
	}
	return true
}

// maxItemErrors is the maximum number of stored errors of one annotation, which may have thousands of items.
const maxItemErrors = 10

// itemErrors collects the errors of annotations, one annotation after the other.
type itemErrors []*itemError

// fail adds an error, or only counts it.
func (e *itemErrors) fail(annotation, item, problem string) {
	if n := len(*e); n >= maxItemErrors && (*e)[n-maxItemErrors].annotation == annotation {
		(*e)[n-1].more++
		return
	}
	*e = append(*e, &itemError{annotation: annotation, item: item, problem: problem})
}

func (e itemErrors) list() []error {
	var list []error
	for _, err := range e {
		list = append(list, err)
	}
	return list
}

// itemError is the problem of one item of an annotation.
type itemError struct {
	// annotation is the key of the annotation.
	annotation string
	// item is the item as written. It is empty if the whole annotation is invalid.
	item string
	// problem says what is wrong, and what is allowed.
	problem string
	// more is the number of further errors of the annotation.
	more int
}

func (e *itemError) Error() string {
	text := e.annotation + ": "
	if e.item != "" {
		text += fmt.Sprintf("item %.100q: ", e.item)
	}
	text += e.problem
	if e.more > 0 {
		text += fmt.Sprintf(". %d more items are invalid", e.more)
	}
	return text
}
