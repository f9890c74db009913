package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// denials has, by workload and source, the last change that the API server refused to have the workload rolled for, or for which somebody reverted
// the roll before this leader began: its pods have other content. The outcome says so too, but only until the next outcome of the workload.
type denials map[workload.Key]map[events.Source]string

// add takes the changes of a patch that was given up.
func (d denials) add(key workload.Key, changes map[events.Source]*pendingChange) {
	for source, c := range changes {
		d.put(key, source, c.change.ID())
	}
}

// resume takes the last outcome of a workload.
func (d denials) resume(last events.Outcome) {
	if last.Reason != events.ReasonPatchDenied && last.Reason != reasonReverted {
		return
	}
	for _, cause := range last.Sources {
		if source, err := events.ParseSource(cause.Source); err == nil {
			key := workload.KeyOf(last.Workload)
			d.put(key, workload.SourceNamed(source.Kind, key.Namespace, source.Name), cause.Event)
		}
	}
}

func (d denials) put(key workload.Key, source events.Source, event string) {
	if d[key] == nil {
		d[key] = make(map[events.Source]string)
	}
	d[key][source] = event
}

// has reports whether a roll for the change was refused.
func (d denials) has(key workload.Key, change events.Change) bool {
	return d[key][change.Source] == change.ID()
}
