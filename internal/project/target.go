package project

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// key names a resource.
type key struct{ kind, namespace, name string }

// target is the part of a resource that the index keeps. It has no value, only a digest of the fields.
type target struct {
	kind            *kind
	namespace, name string
	uid, version    string
	generation      int64
	// text is the annotation. wishes is its content, unless it has a problem.
	text    string
	wishes  []wish
	problem string
	// owned contains the sorted JSON pointers of the fields that the projector owns. shared contains those that another manager owns, too.
	owned, shared []string
	// state is the digest of the wished fields.
	state digest
}

func (t *target) key() key { return key{kind: t.kind.name, namespace: t.namespace, name: t.name} }

// concerns reports whether the resource concerns the projector.
func (t *target) concerns() bool { return t.text != "" || len(t.owned) > 0 }

// reads reports whether the resource wants a key of the given Secret, which must be in its namespace.
func (t *target) reads(of source) bool {
	return t.namespace == of.namespace && slices.ContainsFunc(t.wishes, func(w wish) bool { return w.secret == of.name })
}

// isLike reports whether both are equal for the projector. Most writes of a resource change only its status.
func (t *target) isLike(other *target) bool {
	return t.uid == other.uid && t.text == other.text && t.state == other.state &&
		slices.Equal(t.owned, other.owned) && slices.Equal(t.shared, other.shared)
}

// workload returns the identity of the resource in events.
func (t *target) workload() events.Workload {
	return events.Workload{
		Kind: t.kind.name, Namespace: t.namespace, Name: t.name, UID: t.uid,
		APIVersion: t.kind.config.APIVersion, Resource: t.kind.config.Resource,
	}
}

// differences reports whether a wished field is missing from the fields that the projector owns, and whether it owns a field that is not wished any
// more. If a kind declares a map as atomic, the projector owns the whole map.
func (t *target) differences() (missing, dropped bool) {
	for _, w := range t.wishes {
		missing = missing || !slices.ContainsFunc(t.owned, func(pointer string) bool { return overlap(pointer, w.pointer) })
	}
	for _, pointer := range t.owned {
		dropped = dropped || !slices.ContainsFunc(t.wishes, func(w wish) bool { return overlap(pointer, w.pointer) })
	}
	return missing, dropped
}

func (d digests) read(k *kind, object *unstructured.Unstructured) *target {
	t := &target{
		kind: k, namespace: object.GetNamespace(), name: object.GetName(), uid: string(object.GetUID()), version: object.GetResourceVersion(),
		generation: object.GetGeneration(), text: object.GetAnnotations()[annotation],
	}
	t.owned, t.shared = owners(object.GetManagedFields())
	if t.text == "" {
		return t
	}
	var err error
	if t.wishes, err = parseWishes(t.text); err != nil {
		t.problem = err.Error()
		return t
	}
	values := make([]string, 0, len(t.wishes))
	for _, w := range t.wishes {
		if text, isText := w.value(object); isText {
			values = append(values, text)
		}
	}
	t.state = d.of(t.wishes, values)
	return t
}

// value returns the text of the field in a resource, and false if it has none.
func (w wish) value(object *unstructured.Unstructured) (string, bool) {
	text, isText, _ := unstructured.NestedString(object.Object, w.names...)
	return text, isText
}

// digests makes digests with a key that only this process has.
type digests struct{ key []byte }

type digest [sha256.Size]byte

func newDigests(random io.Reader) (digests, error) {
	d := digests{key: make([]byte, sha256.Size)}
	if _, err := io.ReadFull(random, d.key); err != nil {
		return digests{}, fmt.Errorf("generating a key: %w", err)
	}
	return d, nil
}

// of returns the digest of the values of the wishes. With fewer values than wishes, it returns the zero digest.
func (d digests) of(wishes []wish, values []string) digest {
	if len(values) < len(wishes) {
		return digest{}
	}
	hash := hmac.New(sha256.New, d.key)
	for i, w := range wishes {
		fmt.Fprintf(hash, "%d %s %d %s\n", len(w.pointer), w.pointer, len(values[i]), values[i])
	}
	return digest(hash.Sum(nil))
}

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

// owners returns the sorted JSON pointers of the fields that the projector has applied, and of those that another manager owns, too.
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
		pointer := at + kube.JSONPointer(field)
		if below, ok := value.(map[string]any); ok && len(below) > 0 {
			list = append(list, leaves(pointer, below)...)
			continue
		}
		list = append(list, pointer)
	}
	return list
}
