package workload

import (
	"fmt"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/window"
)

// Namespace is what the annotations of a namespace say about when its workloads are rolled. The zero value says nothing.
type Namespace struct {
	hold    string
	opening opening
}

// ReadNamespace reads the annotations of a namespace.
func ReadNamespace(name string, on map[string]string) Namespace {
	var n Namespace
	if text := events.HoldText(on[events.AnnotationHold]); text != "" {
		n.hold = "namespace " + name + ": " + text
	}
	if text := strings.TrimSpace(on[AnnotationWindow]); text != "" {
		n.opening.own, n.opening.of = true, " of the namespace"
		n.opening.windows, n.opening.invalid = window.Parse(text)
	}
	return n
}

// Same reports whether n and other say the same.
func (n Namespace) Same(other Namespace) bool {
	a, b := n.opening, other.opening
	return n.hold == other.hold && a.own == b.own && a.windows.String() == b.windows.String() && fmt.Sprint(a.invalid) == fmt.Sprint(b.invalid)
}

// Invalid returns what is wrong with the windows, or nil.
func (n Namespace) Invalid() error { return n.opening.invalid }

// In returns the workload with the settings of its namespace, except where its own annotations say otherwise. It does not change w.
func (w *Workload) In(n Namespace) *Workload {
	if n.hold == "" && !n.opening.own {
		return w
	}
	within := *w
	if within.Hold == "" {
		within.Hold = n.hold
	}
	within.opening = w.opening.or(n.opening)
	return &within
}
