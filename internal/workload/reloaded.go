package workload

import (
	"encoding/json"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// markerMargin is how far the time in Reloader's marker may be from the time of the write of the same roll. The marker has the time of
// Reloader's own clock.
const markerMargin = 10 * time.Second

// MayBeReloadedFor reports whether Reloader's newest write may have been a roll for a source, judging by the pod template. Depending on its
// strategy, Reloader leaves a marker, which names the source of its newest roll, or a variable for each source that it has rolled for so far. If
// it has left neither, as when it restarts the pods, nothing is known, and the answer is true.
func (w *Workload) MayBeReloadedFor(source events.Source) bool {
	left := w.stored.containers
	if left == nil {
		return true
	}
	if from, marked := left.reloadedFrom(); marked {
		// If there are variables, too, the marker may date from a time when Reloader had the other strategy.
		if len(left.variables) == 0 || IsMarkerOf(w.Reloaded, from.ObservedAt) {
			return from.Type == reloaderWords[source.Kind] && from.Name == source.Name
		}
	}
	_, varies := left.variables[ReloaderVariable(source)]
	return varies || len(left.variables) == 0
}

// IsMarkerOf reports whether the time in a marker of Reloader, in seconds of Unix time, is that of a write.
func IsMarkerOf(written time.Time, observedAt int64) bool {
	return written.Sub(time.Unix(observedAt, 0)).Abs() <= markerMargin
}

// reloadedFrom returns the marker, and false if there is none or it cannot be read.
func (c *containers) reloadedFrom() (reloadedFrom, bool) {
	text, _ := c.marker.(string)
	var from reloadedFrom
	err := json.Unmarshal([]byte(text), &from)
	return from, err == nil
}
