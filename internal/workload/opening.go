package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// AnnotationWindow is the annotation, on a workload or a namespace, with the windows in which workloads may be rolled: see ParseWindows.
const AnnotationWindow = "keyturn.dev/window"

// openings are the windows in which a workload may be rolled.
type openings struct {
	Windows
	// invalid is the error of the annotation. No window opens then: a typo must not restart a database at noon.
	invalid error
	// of is the owner of the annotation, if not the workload itself.
	of string
}

// readWindow reads AnnotationWindow.
func (w *Workload) readWindow(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	w.windows = openingsIn(text, "")
	if err := w.windows.value.invalid; err != nil {
		w.problem(AnnotationWindow, "", fmt.Sprintf("%v. It is not rolled until that is fixed, or %s is set", err, AnnotationRollNow))
	}
}

// openingsIn reads the text of an annotation.
func openingsIn(text, of string) setting[openings] {
	windows, err := ParseWindows(text)
	return setting[openings]{openings{windows, err, of}, true}
}

// Opening returns the time from which the windows allow a roll; if it is not after now, they allow one. Each workload has its own moment shortly
// after a window opens. It returns false if no window opens.
func (w *Workload) Opening(now time.Time) (time.Time, bool) {
	if w.windows.value.invalid != nil {
		return time.Time{}, false
	}
	return w.windows.value.Opening(now, w.Key().share())
}

// IsOpen reports whether one of the workload's windows is open. The workload's own moment may not have come yet: see Opening.
func (w *Workload) IsOpen(now time.Time) bool {
	return w.windows.value.invalid == nil && w.windows.value.IsOpen(now)
}

// Windows returns the windows in which the workload may be rolled, as written. It is empty if it may be rolled at any time.
func (w *Workload) Windows() string {
	if w.windows.value.invalid != nil {
		return AnnotationWindow + w.windows.value.of + " is not valid"
	}
	return w.windows.value.String()
}

// share returns a number from 0 up to 1, derived from the key, that differs from workload to workload.
func (k Key) share() float64 {
	sum := sha256.Sum256([]byte(k.Kind + "/" + k.Namespace + "/" + k.Name))
	const bits = 53 // of a float64
	return float64(binary.BigEndian.Uint64(sum[:])>>(64-bits)) / (1 << bits)
}

// Namespace contains the settings from the annotations of a namespace about when its workloads are rolled. The zero value has none.
type Namespace struct{ timing timing }

// ReadNamespace reads the annotations of a namespace.
func ReadNamespace(name string, on map[string]string) Namespace {
	var n Namespace
	if text := events.HoldText(on[events.AnnotationHold]); text != "" {
		n.timing.Hold = "namespace " + name + ": " + text
	}
	if text := strings.TrimSpace(on[AnnotationWindow]); text != "" {
		n.timing.windows = openingsIn(text, " of the namespace")
	}
	return n
}

// Same reports whether both have the same settings.
func (n Namespace) Same(other Namespace) bool {
	a, b := n.timing.windows, other.timing.windows
	return n.timing.Hold == other.timing.Hold && a.own == b.own && a.value.String() == b.value.String() &&
		fmt.Sprint(a.value.invalid) == fmt.Sprint(b.value.invalid)
}

// Invalid returns the error of the windows, or nil.
func (n Namespace) Invalid() error { return n.timing.windows.value.invalid }

// In returns the workload with the settings of its namespace where its own annotations have none. It does not change w.
func (w *Workload) In(n Namespace) *Workload {
	if n.timing.Hold == "" && !n.timing.windows.own {
		return w
	}
	within := *w
	within.timing = w.or(n.timing)
	return &within
}
