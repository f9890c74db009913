package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReloaderManager is the field manager of Stakater's Reloader. Everything that it writes on a workload replaces the pods, or resumes the
// workload after that.
const ReloaderManager = "Reloader"

// isOwn, isReloader and isAnyone select the field managers whose writes count.
func isOwn(manager string) bool      { return manager == FieldManager }
func isOther(manager string) bool    { return manager != FieldManager }
func isReloader(manager string) bool { return manager == ReloaderManager }
func isAnyone(string) bool           { return true }

// newestWrite returns the time of the newest write to an object, but not to a subresource, by the selected field managers. It is zero if not
// known.
func newestWrite(meta *metav1.ObjectMeta, by func(manager string) bool) time.Time {
	return newestOf(meta, func(entry *metav1.ManagedFieldsEntry) bool { return entry.Subresource == "" && by(entry.Manager) })
}

// newestTouch returns the time of the newest write to an object or a subresource, by anyone. It is zero if not known.
func newestTouch(meta *metav1.ObjectMeta) time.Time {
	return newestOf(meta, func(*metav1.ManagedFieldsEntry) bool { return true })
}

// newestOf returns the time of the newest write that counts, or zero if it is not known.
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

// lastManager returns the field manager, such as "kubectl-rollout", of the newest write to an object by someone other than the actuator.
// Writes to subresources, such as the status, do not count. It is empty if not known. isLast reports whether the actuator wrote nothing
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
		// The times are precise to a second. Of two writes in one second, the one listed later is the newer one.
		if newest == nil || !entry.Time.Before(newest.Time) {
			newest = entry
		}
	}
	if newest == nil {
		return "", false
	}
	return newest.Manager, own != nil && !newest.Time.Before(own.Time)
}
