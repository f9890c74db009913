package kinds

import (
	"slices"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// writers are the field managers that wrote an object last, the last one first.
type writers struct{ names []string }

// writersOf returns the field managers that wrote an object within events.Soon before its newest write. It returns nil if there are none, and for an
// object as it was created, like most. What a manager has only removed, managedFields do not show.
func writersOf(meta *metav1.ObjectMeta, written time.Time) *writers {
	if isAsCreated(meta, written) {
		return nil
	}
	recent := slices.DeleteFunc(slices.Clone(meta.ManagedFields), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Time == nil || entry.Subresource != "" || written.Sub(entry.Time.Time) >= events.Soon
	})
	slices.Reverse(recent) // Of two writes in one second, the one listed later is the newer one.
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

// add adds a name that is there not yet, if there is room. Many objects share it.
func (w *writers) add(name string) {
	if name != "" && len(w.names) < events.MaxWriters && !slices.Contains(w.names, name) {
		w.names = append(w.names, unique.Make(name).Value())
	}
}

// setWriters adds to an event who has written an object, if it was also written soon before. Who wrote it then may not be in managedFields any more:
// what one manager has written over belongs to it alone.
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
