package project

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldManager is the field manager of the fields that the projector writes.
const fieldManager = "keyturn-projector"

// contested returns the paths of the wished fields that another manager owns, too.
func (t *target) contested() []string {
	var list []string
	for _, w := range t.wishes {
		if slices.ContainsFunc(t.shared, func(pointer string) bool { return overlap(pointer, w.pointer) }) {
			list = append(list, w.path.String())
		}
	}
	return list
}

// owners returns the sorted JSON pointers of the fields that the projector has applied, and of those among them that another manager owns, too.
func owners(entries []metav1.ManagedFieldsEntry) (owned, shared []string) {
	for _, entry := range entries {
		if isOurs(entry) {
			owned = append(owned, fieldsOf(entry)...)
		}
	}
	if len(owned) == 0 {
		return nil, nil
	}
	slices.Sort(owned)
	for _, entry := range entries {
		if isOurs(entry) {
			continue
		}
		for _, pointer := range fieldsOf(entry) {
			if _, found := slices.BinarySearch(owned, pointer); found && !slices.Contains(shared, pointer) {
				shared = append(shared, pointer)
			}
		}
	}
	slices.Sort(shared)
	return owned, shared
}

// isOurs reports whether an entry is the projector's own.
func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == fieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// fieldsOf returns the JSON pointers of the fields of an entry, or none if the entry cannot be read.
func fieldsOf(entry metav1.ManagedFieldsEntry) []string {
	var fields map[string]any
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	return leaves("", fields)
}

// leaves returns the JSON pointers of the fields in a set of FieldsV1.
func leaves(at string, set map[string]any) []string {
	var list []string
	for name, value := range set {
		field, isField := strings.CutPrefix(name, "f:")
		if !isField {
			continue
		}
		pointer := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(field)
		if below, ok := value.(map[string]any); ok && len(below) > 0 {
			list = append(list, leaves(pointer, below)...)
			continue
		}
		list = append(list, pointer)
	}
	return list
}
