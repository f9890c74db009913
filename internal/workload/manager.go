package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReloaderManager is the field manager of Stakater's Reloader. All that it writes on a workload replaces its pods, or resumes it after that.
const ReloaderManager = "Reloader"

// isOwn, isReloader and isAnyone choose the field managers whose writes count.
func isOwn(manager string) bool      { return manager == FieldManager }
func isReloader(manager string) bool { return manager == ReloaderManager }
func isAnyone(string) bool           { return true }

// newestWrite returns the time of the newest write of an object by some field managers that is not of a subresource, zero if it is not known.
func newestWrite(meta *metav1.ObjectMeta, by func(manager string) bool) time.Time {
	return newestOf(meta, func(entry *metav1.ManagedFieldsEntry) bool { return entry.Subresource == "" && by(entry.Manager) })
}

// newestTouch returns the time of the newest write of an object by anyone, also of a subresource, zero if it is not known.
func newestTouch(meta *metav1.ObjectMeta) time.Time {
	return newestOf(meta, func(*metav1.ManagedFieldsEntry) bool { return true })
}

// newestOf returns the time of the newest of the writes that count, zero if it is not known.
func newestOf(meta *metav1.ObjectMeta, counts func(*metav1.ManagedFieldsEntry) bool) time.Time {
	var newest time.Time
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if entry.Time != nil && entry.Time.After(newest) && counts(entry) {
			newest = entry.Time.Time
		}
	}
	return newest
}

// lastManager returns the field manager, such as "kubectl-rollout", of the newest write of an object by someone other than the actuator and
// not of a subresource, such as the status. Empty: it is not known. The second result, isLast, reports whether the actuator wrote nothing
// after that.
func lastManager(meta *metav1.ObjectMeta) (manager string, isLast bool) {
	var newest, own *metav1.ManagedFieldsEntry
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if entry.Subresource != "" || entry.Time == nil {
			continue
		}
		if entry.Manager == FieldManager {
			if own == nil || own.Time.Before(entry.Time) {
				own = entry
			}
			continue
		}
		// The times are precise to a second. Of two in one second, the one listed later was written later.
		if newest == nil || !entry.Time.Before(newest.Time) {
			newest = entry
		}
	}
	if newest == nil {
		return "", false
	}
	return newest.Manager, own != nil && !newest.Time.Before(own.Time)
}
