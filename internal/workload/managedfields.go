package workload

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newestTouch returns the time of the newest write to an object or a subresource, by anyone. It is zero if unknown.
func newestTouch(meta *metav1.ObjectMeta) time.Time {
	return newestOf(meta, func(*metav1.ManagedFieldsEntry) bool { return true })
}

// newestOf returns the time of the newest write that counts, or zero if unknown.
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

// readWrites reads who wrote the object itself, and when.
func (o *object) readWrites(meta *metav1.ObjectMeta) {
	for i := range meta.ManagedFields {
		switch entry := &meta.ManagedFields[i]; {
		case entry.Subresource != "" || entry.Time == nil:
		case entry.Manager == FieldManager:
			o.Patched = later(o.Patched, entry.Time.Time)
		case !entry.Time.Time.Before(o.Edited): // Of two writes in the same second, the last in the list is newer.
			o.Edited, o.Manager = entry.Time.Time, entry.Manager
		}
	}
	o.Written = later(o.Patched, o.Edited)
	o.ManagerIsLast = !o.Patched.IsZero() && !o.Edited.Before(o.Patched)
}

// FieldManager is the actuator's field manager.
const FieldManager = "keyturn"

// ancientManager is the field manager into which the API server merges the oldest ones once more than ten have updated an object.
const ancientManager = "ancient-changes"

// createdTolerance is the maximum difference between the clocks of two API servers.
const createdTolerance = 10 * time.Second

// isOurs reports whether an annotation has the value that the actuator wrote. Other clients may remove it, restore an earlier value, as `kubectl
// rollout undo` does, or copy it to another object. Without managedFields, which a webhook may drop, it counts as the actuator's own.
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

// mayBeOurs reports whether an entry is about writes of the actuator to this object. An object from a backup has older entries about another object.
func mayBeOurs(entry *metav1.ManagedFieldsEntry, created time.Time) bool {
	if entry.Manager != FieldManager && entry.Manager != ancientManager {
		return false
	}
	return entry.Time == nil || !entry.Time.Add(createdTolerance).Before(created)
}

// updatedFields returns the FieldsV1 of an entry about updates of the object itself, and nil for an entry about applies or a subresource.
func updatedFields(entry *metav1.ManagedFieldsEntry) []byte {
	if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" || entry.FieldsV1 == nil {
		return nil
	}
	fields, err := entry.FieldsV1.MarshalJSON() // The field is kept as received, perhaps as CBOR.
	if err != nil {
		return nil
	}
	return fields
}

// owns reports whether a set of FieldsV1 contains the field at the path of names. Every watch event has such sets, so a set is decoded only if it
// contains the last name anywhere.
func owns(set []byte, names ...string) bool {
	if !bytes.Contains(set, []byte(`"`+names[len(names)-1]+`"`)) {
		return false
	}
	for _, name := range names {
		var fields map[string]json.RawMessage
		if json.Unmarshal(set, &fields) != nil {
			return false
		}
		set = fields[name]
	}
	return set != nil
}

// undoers are the programs with which people undo a rollout. They set no field manager for that, so the API server uses the name of the program.
// Other kubectl commands set one, such as kubectl-replace, and tools may use these, too.
var undoers = []string{"kubectl", "kubectl-argo-rollouts", "oc"}

// isUndoer reports whether a field manager is one of these programs. On Windows, the name has an extension.
func isUndoer(manager string) bool {
	name, isProgram := strings.CutSuffix(manager, ".exe")
	return slices.Contains(undoers, name) || isProgram && strings.HasPrefix(name, "kubectl-")
}

// undoneBy returns the field manager of a person who has restored the revision or the record since the actuator wrote it, or "". No apply does.
func undoneBy(meta *metav1.ObjectMeta) string {
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if !isUndoer(entry.Manager) {
			continue
		}
		fields := updatedFields(entry)
		if owns(fields, "f:metadata", "f:annotations", "f:"+annotationRolled) ||
			owns(fields, "f:spec", "f:template", "f:metadata", "f:annotations", "f:"+annotationRevision) {
			return entry.Manager
		}
	}
	return ""
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
