package workload

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// AnnotationRollOn, on a workload or its pod template, lists the sources that the workload rolls on.
const AnnotationRollOn = "keyturn.dev/roll-on"

// maxAnnotation is the maximum size of an annotation, in bytes. Kubernetes allows 256 KiB for all annotations of an object.
const maxAnnotation = 16 << 10

// OptIn is what a workload rolls on. The zero value rolls on nothing.
type OptIn struct {
	include []rule
	exclude []rule
}

// parseOptIn parses the annotations of a workload and of its pod template. all is the operator's --roll-all: the workload rolls on
// what its pod spec references, unless its annotations say otherwise.
//
// Each invalid item causes one *itemError, and does not affect the others.
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

// optInParser collects rules and errors from annotations.
type optInParser struct {
	include []rule
	exclude []rule
	errs    []error
}

func (p *optInParser) fail(annotation, item, problem string) {
	p.errs = append(p.errs, &itemError{Annotation: annotation, Item: item, Problem: problem})
}

// fits reports whether an annotation is short enough. One that is not is an error, and is ignored.
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

// itemError is the error of one item of an annotation.
type itemError struct {
	// Annotation is the key of the annotation.
	Annotation string
	// Item is the item as written. Empty if the error is about the whole annotation.
	Item string
	// Problem says what is wrong, and what is allowed.
	Problem string
}

func (e *itemError) Error() string {
	if e.Item == "" {
		return e.Annotation + ": " + e.Problem
	}
	return fmt.Sprintf("%s: item %.100q: %s", e.Annotation, e.Item, e.Problem)
}

// rule is a parsed item of an annotation.
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

// matcher reports whether an item means the source of a name.
type matcher interface {
	match(name string) bool
}

// exactly returns the matcher of one name.
type exactly string

func (e exactly) match(name string) bool { return name == string(e) }

func (r *rule) covers(source events.Source) bool {
	return (r.kind == "" || r.kind == source.Kind) && (r.name == nil || isCalled(source, r.name))
}

// Empty reports whether the workload never rolls, whatever changes.
func (o OptIn) Empty() bool { return len(o.include) == 0 }

// names returns the sources that are named exactly, in order. The workload rolls on them even if it does not reference them.
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

// HasPatterns reports whether a pattern names sources of the kind: the workload can then roll on any in its namespace, even if it
// does not reference it.
func (o OptIn) HasPatterns(kind events.Kind) bool {
	return slices.ContainsFunc(o.include, func(r rule) bool {
		if r.name == nil || r.kind != kind {
			return false
		}
		_, exact := r.name.(exactly)
		return !exact
	})
}
