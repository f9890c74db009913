package workload

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// lastManager returns the field manager, such as "kubectl-rollout", of the newest write of an object by someone other than the actuator and
// not of a subresource, such as the status. Empty: it is not known.
func lastManager(meta *metav1.ObjectMeta) string {
	var newest *metav1.ManagedFieldsEntry
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if entry.Subresource != "" || entry.Manager == FieldManager || entry.Time == nil {
			continue
		}
		// The times are precise to a second. Of two in one second, the one listed later was written later.
		if newest == nil || !entry.Time.Before(newest.Time) {
			newest = entry
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Manager
}
