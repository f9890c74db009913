package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ancientManager is what the API server makes of the oldest managers of an object once more than ten have updated it.
const ancientManager = "ancient-changes"

// createdTolerance is how far apart the clocks of two API servers may be.
const createdTolerance = 10 * time.Second

// isOurs reports whether an annotation of an object, which the actuator never removes, is as the actuator wrote it. Others remove it, bring back an
// earlier value, as `kubectl rollout undo` of a Deployment does, or copy it to another object. managedFields say who wrote it. It counts as the
// actuator's own if there are none, as where an admission webhook drops them.
func isOurs(meta *metav1.ObjectMeta, annotation string) bool {
	if _, has := meta.Annotations[annotation]; !has {
		return false
	}
	if len(meta.ManagedFields) == 0 {
		return true
	}
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if mayBeOurs(entry, meta.CreationTimestamp.Time) && owns(updatedFields(entry), "f:metadata", "f:annotations", "f:"+annotation) {
			return true
		}
	}
	return false
}

// mayBeOurs reports whether an entry of managedFields is about writes of the actuator to an object that was created at a given time. In an object
// from a backup there may be entries about an object that is gone, which are earlier.
func mayBeOurs(entry *metav1.ManagedFieldsEntry, created time.Time) bool {
	if entry.Manager != FieldManager && entry.Manager != ancientManager {
		return false
	}
	return entry.Time == nil || !entry.Time.Add(createdTolerance).Before(created)
}

// updatedFields returns the set of FieldsV1 of an entry about updates of the object itself, and nil for an entry about applies or a subresource.
func updatedFields(entry *metav1.ManagedFieldsEntry) []byte {
	if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" || entry.FieldsV1 == nil {
		return nil
	}
	fields, err := entry.FieldsV1.MarshalJSON() // It is kept as it came, which may be CBOR.
	if err != nil {
		return nil
	}
	return fields
}

// owns reports whether a set of FieldsV1, which consists of nested objects, has a field. The names lead to the field from the outside in. Each event
// of a watch has such sets, so they are not decoded.
func owns(set []byte, names ...string) bool {
	depth, found := 0, 0 // found is how many names lead to the last key.
	for at := 0; at < len(set); at++ {
		switch set[at] {
		case '{':
			depth++
		case '}':
			depth--
		case '"':
			key := set[at+1 : at+1+lengthOf(set[at+1:])]
			at += len(key) + 1
			if depth < 1 {
				return false // It is no set.
			}
			found = min(found, depth-1)
			if found == depth-1 && string(key) == names[found] {
				found++
			}
			if found == len(names) {
				return true
			}
		}
	}
	return false
}

// lengthOf returns the length of a JSON string that begins after its first quote, without the last quote.
func lengthOf(text []byte) int {
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at
		}
	}
	return len(text)
}

// readRecord returns the record of an object. It returns false if the annotation is not as the actuator wrote it, or is no record.
func readRecord(meta *metav1.ObjectMeta) (rolled map[string]RolledFor, ours bool) {
	if !isOurs(meta, annotationRolled) {
		return nil, false
	}
	text := meta.Annotations[annotationRolled]
	if rolled = parseRolled(text); rolled == nil && text != "" {
		return nil, false
	}
	return rolled, true
}

// recallRecord takes over the record of an earlier state, unless the annotation is as the actuator wrote it.
func (w *Workload) recallRecord(earlier *Workload) {
	if !w.ours && w.kept == nil {
		w.Rolled = earlier.Rolled
	}
}

// IsRecordLost reports whether others have replaced or removed the annotation of the record, so that the record is only known from memory.
func (w *Workload) IsRecordLost() bool {
	return !w.ours && w.kept == nil && len(w.Rolled) > 0 && !w.OptIn.Empty()
}
