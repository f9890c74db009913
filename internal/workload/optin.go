package workload

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// AnnotationRollOn is the annotation, of a workload or of its pod template, that lists what the workload rolls on.
const AnnotationRollOn = "keyturn.dev/roll-on"

// maxAnnotation is how long an annotation may be, in bytes. Kubernetes allows 256 KiB for all annotations of an object.
const maxAnnotation = 16 << 10

// OptIn is what a workload rolls on. The zero value rolls on nothing.
type OptIn struct {
	include []rule
	exclude []rule
}

// parseOptIn reads the annotations of a workload and of its pod template. All is the operator's --roll-all: what the pod
// spec references counts, unless the workload says otherwise.
//
// Each item that cannot be read is one *ItemError, and takes nothing away from the others.
func parseOptIn(workload, template map[string]string, all bool) (OptIn, []error) {
	var p optInParser
	own := p.rollOn(workload, template)
	if own == rollOnNone {
		return OptIn{}, p.errs
	}
	p.reloader(workload, template, all && own == rollOnSilent)
	slices.SortStableFunc(p.include, func(a, b rule) int { return cmp.Compare(a.reason, b.reason) })
	return OptIn{include: p.include, exclude: p.exclude}, p.errs
}

// optInParser gathers rules and errors from annotations.
type optInParser struct {
	include []rule
	exclude []rule
	errs    []error
}

func (p *optInParser) fail(annotation, item, problem string) {
	p.errs = append(p.errs, &itemError{Annotation: annotation, Item: item, Problem: problem})
}

// fits reports an annotation that is too long. Nothing of it is read.
func (p *optInParser) fits(annotation, text string) bool {
	if len(text) <= maxAnnotation {
		return true
	}
	p.errs = append(p.errs, &itemError{
		Annotation: annotation,
		Problem:    fmt.Sprintf("is %d bytes long: at most %d are read", len(text), maxAnnotation),
	})
	return false
}

// itemError says what is wrong with one item of an annotation, and what is allowed there.
type itemError struct {
	// Annotation is the key of the annotation.
	Annotation string
	// Item is the item as it was written. Empty: it is about the whole annotation.
	Item string
	// Problem says what is wrong and what is allowed.
	Problem string
}

func (e *itemError) Error() string {
	if e.Item == "" {
		return e.Annotation + ": " + e.Problem
	}
	return fmt.Sprintf("%s: item %.100q: %s", e.Annotation, e.Item, e.Problem)
}

// rule is one item of an annotation, read.
type rule struct {
	reason     WantReason
	annotation string
	item       string
	// Kind is empty where the rule is for every kind.
	kind events.Kind
	// name is nil where the rule is for every name.
	name matcher
	// key is empty where the rule is for the whole source.
	key string
}

// matcher says which names of sources an item means.
type matcher interface {
	match(name string) bool
}

// exactly is the matcher of one name.
type exactly string

func (e exactly) match(name string) bool { return name == string(e) }

func (r *rule) covers(source events.Source) bool {
	return (r.kind == "" || r.kind == source.Kind) && (r.name == nil || isCalled(source, r.name))
}

// Empty says that the workload can never roll, whatever changes.
func (o OptIn) Empty() bool { return len(o.include) == 0 }

// names lists the sources that are named exactly, in order. The workload may want them without referencing them.
func (o OptIn) names(namespace string) []events.Source {
	var list []events.Source
	for i := range o.include {
		if name, ok := o.include[i].name.(exactly); ok {
			list = append(list, SourceNamed(o.include[i].kind, namespace, string(name)))
		}
	}
	slices.SortFunc(list, func(a, b events.Source) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(list)
}

// HasPatterns says that sources of the kind are named by a pattern: the workload may want any that is in its namespace,
// without referencing it.
func (o OptIn) HasPatterns(kind events.Kind) bool {
	return slices.ContainsFunc(o.include, func(r rule) bool {
		if r.name == nil || r.kind != kind {
			return false
		}
		_, exact := r.name.(exactly)
		return !exact
	})
}
