package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// denials has, by workload and source, the last change that the API server refused to have the workload rolled for: its pods have other
// content. The outcome says so too, but only until the next outcome of the workload.
type denials map[workload.Key]map[events.Source]string

// add takes the changes of a patch that was given up.
func (d denials) add(key workload.Key, changes map[events.Source]*pendingChange) {
	if d[key] == nil {
		d[key] = make(map[events.Source]string)
	}
	for source, c := range changes {
		d[key][source] = c.change.ID()
	}
}

// has reports whether a roll for the change was refused.
func (d denials) has(key workload.Key, change events.Change) bool {
	return d[key][change.Source] == change.ID()
}
