//go:build !race

package actuate_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// fieldManagers gives workloads managedFields, as an API server does: they say who has last written each annotation, and the rest of the
// specification, and when. Entries that a test puts there itself are kept.
type fieldManagers struct {
	k8stesting.ObjectTracker
	// next makes the next write. If its name is empty, that is a person. It does so at a time, if that is not zero.
	next fieldManager
	at   time.Time
	// owners are the managers of the fields of each object, and times when each of them has last written it.
	owners map[types.UID]map[ownedField]fieldManager
	times  map[types.UID]map[fieldManager]time.Time
}

// fieldManager is who writes fields, and how.
type fieldManager struct {
	name      string
	operation metav1.ManagedFieldsOperationType
}

// ownedField is an annotation of a workload, or one of its pod template. The zero value is the rest of the specification.
type ownedField struct {
	annotation string
	ofPods     bool
}

func newFieldManagers(objects k8stesting.ObjectTracker) *fieldManagers {
	return &fieldManagers{
		ObjectTracker: objects, owners: make(map[types.UID]map[ownedField]fieldManager), times: make(map[types.UID]map[fieldManager]time.Time),
	}
}

// writes names the manager of the next write, as in the options of a request. If it is empty, that is a person.
func (m *fieldManagers) writes(manager string) {
	m.next = fieldManager{name: manager, operation: metav1.ManagedFieldsOperationUpdate}
}

// Create stores a new object.
func (m *fieldManagers) Create(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.CreateOptions) error {
	m.note(nil, object)
	return m.ObjectTracker.Create(resource, object, namespace, options...)
}

// Update replaces an object.
func (m *fieldManagers) Update(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.UpdateOptions) error {
	before, err := m.Get(resource, namespace, metaOf(object).GetName())
	if err != nil {
		return err
	}
	m.note(before, object)
	return m.ObjectTracker.Update(resource, object, namespace, options...)
}

// note notes who makes a write. Before is nil for a new object.
func (m *fieldManagers) note(before, after runtime.Object) {
	by, at := m.next, m.at
	m.next, m.at = fieldManager{}, time.Time{}
	if !isManaged(after) {
		return
	}
	if by.name == "" {
		by = fieldManager{name: "person", operation: metav1.ManagedFieldsOperationUpdate}
	}
	if at.IsZero() {
		at = time.Now()
	}
	object := metaOf(after)
	if isRestored(before, object) {
		return
	}
	uid := object.GetUID()
	if m.owners[uid] == nil {
		m.owners[uid], m.times[uid] = make(map[ownedField]fieldManager), make(map[fieldManager]time.Time)
	}
	owners, times := m.owners[uid], m.times[uid]
	was, is := ownedFieldsOf(before), ownedFieldsOf(after)
	if maps.Equal(was, is) {
		return // of the status
	}
	times[by] = at
	for f, text := range is {
		if had, ok := was[f]; !ok || had != text {
			owners[f] = by
		}
	}
	for f := range was {
		if _, kept := is[f]; !kept {
			delete(owners, f)
		}
	}
	entries := slices.DeleteFunc(slices.Clone(object.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		_, known := times[fieldManager{entry.Manager, entry.Operation}]
		return known
	})
	object.SetManagedFields(append(entries, entriesOf(owners, times)...))
}

// isRestored reports whether a write brings managedFields of its own, as one from a backup does. Before is nil for a new object.
func isRestored(before runtime.Object, after metav1.Object) bool {
	var had []metav1.ManagedFieldsEntry
	if before != nil {
		had = metaOf(before).GetManagedFields()
	}
	has := after.GetManagedFields()
	return len(has) > 0 && jsonOf(has) != jsonOf(had)
}

// entriesOf returns managedFields, the oldest entry first. A manager that owns nothing has none.
func entriesOf(owners map[ownedField]fieldManager, times map[fieldManager]time.Time) []metav1.ManagedFieldsEntry {
	owned := make(map[fieldManager][]ownedField)
	for f, by := range owners {
		owned[by] = append(owned[by], f)
	}
	order := slices.SortedFunc(maps.Keys(owned), func(a, b fieldManager) int {
		if by := times[a].Compare(times[b]); by != 0 {
			return by
		}
		return strings.Compare(a.name, b.name)
	})
	entries := make([]metav1.ManagedFieldsEntry, 0, len(order))
	for _, by := range order {
		at := metav1.NewTime(times[by].Truncate(time.Second))
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: by.name, Operation: by.operation, APIVersion: "apps/v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fieldsV1Of(owned[by])),
		})
	}
	return entries
}

// fieldsV1Of returns fields as managedFields have them.
func fieldsV1Of(fields []ownedField) string {
	type tree map[string]any
	own, template, pods := tree{}, tree{}, tree{}
	for _, f := range fields {
		switch {
		case f == ownedField{}:
			template["f:spec"] = tree{}
		case f.ofPods:
			pods["f:"+f.annotation] = tree{}
		default:
			own["f:"+f.annotation] = tree{}
		}
	}
	all := tree{}
	if len(own) > 0 {
		all["f:metadata"] = tree{"f:annotations": own}
	}
	if len(pods) > 0 {
		template["f:metadata"] = tree{"f:annotations": pods}
	}
	if len(template) > 0 {
		all["f:spec"] = tree{"f:template": template}
	}
	return jsonOf(all)
}

func jsonOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// isManaged reports whether an object is a workload. Others have no managedFields.
func isManaged(object runtime.Object) bool {
	switch object.(type) {
	case *batchv1.Job, *unstructured.Unstructured:
		return true
	}
	return templateOf(object) != nil
}

// ownedFieldsOf returns the fields of a workload and what they have. There are none if it is nil.
func ownedFieldsOf(object runtime.Object) map[ownedField]string {
	fields := make(map[ownedField]string)
	if object == nil {
		return fields
	}
	for name, text := range metaOf(object).GetAnnotations() {
		fields[ownedField{annotation: name}] = text
	}
	object = object.DeepCopyObject()
	var pod corev1.PodTemplateSpec
	var rest any
	switch o := object.(type) {
	case *unstructured.Unstructured:
		rest = o.Object["spec"]
	case *batchv1.Job:
		pod, o.Spec.Template.Annotations = o.Spec.Template, nil
		rest = o.Spec
	default:
		_, template := partsOf(object)
		pod, template.Annotations = *template, nil
		rest = specOf(object)
	}
	for name, text := range pod.Annotations {
		fields[ownedField{annotation: name, ofPods: true}] = text
	}
	fields[ownedField{}] = jsonOf(rest)
	return fields
}

// writeAs changes a workload as a program with this field manager does.
func (s *scene) writeAs(manager, name string, aspects ...aspect) {
	s.Helper()
	s.writeAt(time.Now(), manager, name, aspects...)
}

// writeAt is like writeAs, by an API server whose clock shows a time.
func (s *scene) writeAt(at time.Time, manager, name string, aspects ...aspect) {
	s.Helper()
	s.writeWith(fieldManager{manager, metav1.ManagedFieldsOperationUpdate}, at, name, aspects)
}

// applyAs changes a workload as a program does that applies its manifest on the server, whoever owns the fields.
func (s *scene) applyAs(manager, name string, aspects ...aspect) {
	s.Helper()
	s.writeWith(fieldManager{manager, metav1.ManagedFieldsOperationApply}, time.Now(), name, aspects)
}

func (s *scene) writeWith(by fieldManager, at time.Time, name string, aspects []aspect) {
	s.Helper()
	s.change(name, func(object runtime.Object) {
		edited, pod := partsOf(object)
		for _, aspect := range aspects {
			aspect(edited, pod)
		}
		s.storage.next, s.storage.at = by, at
	})
}

// settingNames are the annotations in our domain that people write.
var settingNames = []string{
	workload.AnnotationRollOn, events.AnnotationHold, workload.AnnotationWindow, workload.AnnotationMinInterval, workload.AnnotationMaxRollsPerHour,
	workload.AnnotationRollNow, workload.AnnotationBake, workload.AnnotationReload, "keyturn.dev/wave",
}

// isWrittenByUs reports whether an annotation is one that the actuator writes.
func isWrittenByUs(name string) bool {
	return name == "deployment.reloader.stakater.com/paused-at" || strings.HasPrefix(name, "keyturn.dev/") && !slices.Contains(settingNames, name)
}
