package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/window"
)

// AnnotationWindow is the annotation, on a workload, that says in which windows it may be rolled: see window.Parse.
const AnnotationWindow = "keyturn.dev/window"

// opening is when a workload may be rolled.
type opening struct {
	// windows are from the workload's own annotation, or Reading.Window.
	windows window.Windows
	// own says that the workload has the annotation, and invalid what is wrong with that. If it is invalid, no window opens: a typo must not
	// restart a database at noon.
	own     bool
	invalid error
	// of says whose annotation it is, if not the workload's own.
	of string
}

// readWindow reads AnnotationWindow.
func (w *Workload) readWindow(on map[string]string, reading Reading) {
	w.opening.windows = reading.Window
	text := strings.TrimSpace(on[AnnotationWindow])
	if text == "" {
		return
	}
	w.opening.own = true
	w.opening.windows, w.opening.invalid = window.Parse(text)
	if err := w.opening.invalid; err != nil {
		w.Problems = append(w.Problems, &itemError{
			annotation: AnnotationWindow, problem: fmt.Sprintf("%v. It is not rolled until that is fixed, or %s is set", err, AnnotationRollNow),
		})
	}
}

// Opening returns the time from which the windows of the workload allow a roll. If they allow it now, the time is not after now. Each workload
// has its own moment shortly after a window opens. It returns false if no window opens.
func (w *Workload) Opening(now time.Time) (time.Time, bool) {
	if w.opening.invalid != nil {
		return time.Time{}, false
	}
	return w.opening.windows.Opening(now, w.Key().share())
}

// NextOpening returns when the next window of the workload opens, without the workload's own delay after that. It is zero if
// none opens for years.
func (w *Workload) NextOpening(now time.Time) time.Time {
	if w.opening.invalid != nil {
		return time.Time{}
	}
	at, _ := w.opening.windows.Opening(now, 0)
	return at
}

// IsOpen reports whether one of the workload's windows is open. The workload's own moment may not have come yet: see Opening.
func (w *Workload) IsOpen(now time.Time) bool {
	return w.opening.invalid == nil && w.opening.windows.IsOpen(now)
}

// Windows returns the windows in which the workload may be rolled, as they were written. It is empty if that is at any time.
func (w *Workload) Windows() string {
	if w.opening.invalid != nil {
		return AnnotationWindow + w.opening.of + " is not valid"
	}
	return w.opening.windows.String()
}

// or returns what applies to a workload whose pods another one runs: its own annotation if it has one, otherwise that of the other.
func (o opening) or(other opening) opening {
	if o.own || !other.own {
		return o
	}
	return other
}

// share returns a number from 0 up to 1, derived from the key, that differs from workload to workload.
func (k Key) share() float64 {
	sum := sha256.Sum256([]byte(k.Kind + "/" + k.Namespace + "/" + k.Name))
	const bits = 53 // of a float64
	return float64(binary.BigEndian.Uint64(sum[:])>>(64-bits)) / (1 << bits)
}

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
