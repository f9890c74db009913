package actuate

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// denials has, by workload and source, the last change of which it was told that its patch is refused. Nothing on the workload says so if the record
// is refused, too. The outcome does, but only until the next outcome of the workload.
type denials map[workload.Key]map[events.Source]string

// tell takes the changes that are to roll the workload of a patch.
func (d denials) tell(r *task) {
	for _, c := range r.causes {
		d.put(r.workload.Key(), c.change.Source, c.change.ID())
	}
}

// isTold reports whether all changes that are to roll the workload of a patch were told.
func (d denials) isTold(r *task) bool {
	return len(r.causes) > 0 && !slices.ContainsFunc(r.causes, func(c *pendingChange) bool { return !d.has(r.workload.Key(), c.change) })
}

// accept forgets what was told of a workload, which has been rolled.
func (d denials) accept(key workload.Key) { delete(d, key) }

// resume takes the last outcome of a workload.
func (d denials) resume(last events.Outcome) {
	if last.Reason != events.ReasonPatchDenied {
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

// has reports whether it was told that a roll for the change is refused.
func (d denials) has(key workload.Key, change events.Change) bool {
	return d[key][change.Source] == change.ID()
}
