package kinds

import (
	"slices"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// writers are the field managers that last wrote an object, the newest first.
type writers struct{ names []string }

// writersOf returns the field managers that wrote an object within events.Soon before its newest write. It returns nil if there are none, and for an
// object that was not written since its creation. managedFields do not show writes that only removed fields.
func writersOf(meta *metav1.ObjectMeta, written time.Time) *writers {
	if isAsCreated(meta, written) {
		return nil
	}
	recent := slices.DeleteFunc(slices.Clone(meta.ManagedFields), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Time == nil || entry.Subresource != "" || written.Sub(entry.Time.Time) >= events.Soon
	})
	slices.Reverse(recent) // Of two writes in the same second, the last in the list is newer.
	slices.SortStableFunc(recent, func(a, b metav1.ManagedFieldsEntry) int { return b.Time.Compare(a.Time.Time) })
	var w writers
	for _, entry := range recent {
		w.add(entry.Manager)
	}
	if len(w.names) == 0 {
		return nil
	}
	return &w
}

// add adds a new name if there is room. Many objects share it.
func (w *writers) add(name string) {
	if name != "" && len(w.names) < events.MaxWriters && !slices.Contains(w.names, name) {
		w.names = append(w.names, unique.Make(name).Value())
	}
}

// setWriters adds the writers of an object to an event, if the object was also written shortly before. The previous writer may be missing from
// managedFields, because overwritten fields belong only to the new writer, so it is taken from the last event.
func setWriters(change *events.Change, before *LastEvent, now *Object) {
	earlier := before.WrittenAt()
	if earlier.IsZero() || now.written().IsZero() || now.written().Sub(earlier) >= events.Soon {
		return
	}
	var w writers
	if now.writers != nil {
		w.names = slices.Clone(now.writers.names)
	}
	if known := before.rare().Writers; len(known) > 0 {
		w.add(known[0])
	}
	change.Writers = w.names
}
