package workload

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// readWrites reads who has written an object itself, and when.
func (o *object) readWrites(meta *metav1.ObjectMeta) {
	for i := range meta.ManagedFields {
		switch entry := &meta.ManagedFields[i]; {
		case entry.Subresource != "" || entry.Time == nil:
		case entry.Manager == FieldManager:
			o.Patched = later(o.Patched, entry.Time.Time)
		case !entry.Time.Time.Before(o.Edited): // Of two writes in one second, the one listed later is the newer one.
			o.Edited, o.Manager = entry.Time.Time, entry.Manager
		}
	}
	o.Written = later(o.Patched, o.Edited)
	o.ManagerIsLast = !o.Patched.IsZero() && !o.Edited.Before(o.Patched)
}

// FieldManager is the field manager of the actuator's annotations in managedFields.
const FieldManager = "keyturn"

// ancientManager is what the API server makes of the oldest managers of an object once more than ten have updated it.
const ancientManager = "ancient-changes"

// createdTolerance is how far apart the clocks of two API servers may be.
const createdTolerance = 10 * time.Second

// isOurs reports whether an annotation, which the actuator never removes, is as the actuator wrote it. Others remove it, bring back an earlier value,
// as `kubectl rollout undo` does, or copy it to another object. Without managedFields, which a webhook may drop, it counts as the actuator's own.
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

// mayBeOurs reports whether an entry is about writes of the actuator to this object. One from a backup has older entries, about another object.
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

// owns reports whether a set of FieldsV1 has the field to which the names lead. Each event of a watch has such sets, so only those are decoded that
// have the last name anywhere.
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

// undoers are the programs with which people undo a rollout. They name no field manager for that, so the API server takes the name of the program.
// The other commands of kubectl name one, such as kubectl-replace, and a tool may use them as well.
var undoers = []string{"kubectl", "kubectl-argo-rollouts", "oc"}

// isUndoer reports whether a field manager is one of the programs. On Windows, the name of a program has an extension.
func isUndoer(manager string) bool {
	name, isProgram := strings.CutSuffix(manager, ".exe")
	return slices.Contains(undoers, name) || isProgram && strings.HasPrefix(name, "kubectl-")
}

// undoneBy returns the field manager of a person who has put back the revision or the record since the actuator wrote it, or "". No apply does that.
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
