package workload

import (
	"encoding/json"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// markerMargin is how far apart Reloader's marker and its write may be that are of one roll. The marker has the time of Reloader's own clock.
const markerMargin = 10 * time.Second

// MayBeReloadedFor reports whether Reloader's newest write may have been a roll for a source, judging by the pod template. By its strategy,
// Reloader leaves a marker, which names the source of its newest roll, or a variable for each source that it has rolled for so far. If it has left
// neither, as where it restarts the pods, that is not known.
func (w *Workload) MayBeReloadedFor(source events.Source) bool {
	left := w.stored.containers
	if left == nil {
		return true
	}
	if from, marked := left.reloadedFrom(); marked {
		age := w.Reloaded.Sub(time.Unix(from.ObservedAt, 0))
		// Beside variables, it may be of a time at which Reloader had the other strategy.
		if len(left.variables) == 0 || age.Abs() <= markerMargin {
			return from.Type == reloaderWords[source.Kind] && from.Name == source.Name
		}
	}
	_, varies := left.variables[ReloaderVariable(source)]
	return varies || len(left.variables) == 0
}

// reloadedFrom returns the marker, and false if there is none that can be read.
func (c *containers) reloadedFrom() (reloadedFrom, bool) {
	text, _ := c.marker.(string)
	var from reloadedFrom
	err := json.Unmarshal([]byte(text), &from)
	return from, err == nil
}
