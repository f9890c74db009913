//go:build !race

package actuate_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// fieldManagers gives workloads managedFields, as an API server does: they say who has last written each annotation, and the rest of the
// specification, and when.
type fieldManagers struct {
	k8stesting.ObjectTracker
	// next makes the next write. If it is empty, that is the actuator or a person, depending on which annotations are written.
	next string
	// owners are the managers of the fields of each object, and times when each of them has last written it.
	owners map[types.UID]map[ownedField]string
	times  map[types.UID]map[string]time.Time
}

// ownedField is an annotation of a workload, or one of its pod template. The zero value is the rest of the specification.
type ownedField struct {
	annotation string
	ofPods     bool
}

// manage lets the API server keep managedFields from now on.
func (s *scene) manage() {
	s.storage = &fieldManagers{
		ObjectTracker: s.storage, owners: make(map[types.UID]map[ownedField]string), times: make(map[types.UID]map[string]time.Time),
	}
}

// Create stores a new object. The actuator creates no workloads.
func (m *fieldManagers) Create(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.CreateOptions) error {
	if templateOf(object) != nil {
		m.next = "person"
		m.manage(nil, ownedFieldsOf(object), metaOf(object))
	}
	return m.ObjectTracker.Create(resource, object, namespace, options...)
}

// Update replaces an object.
func (m *fieldManagers) Update(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.UpdateOptions) error {
	if templateOf(object) != nil {
		before, err := m.Get(resource, namespace, metaOf(object).GetName())
		if err != nil {
			return err
		}
		m.manage(ownedFieldsOf(before), ownedFieldsOf(object), metaOf(object))
	}
	return m.ObjectTracker.Update(resource, object, namespace, options...)
}

// manage notes who makes a write.
func (m *fieldManagers) manage(before, after map[ownedField]string, object metav1.Object) {
	uid, by, byUs := object.GetUID(), m.next, false
	m.next = ""
	owners, times := m.owners[uid], m.times[uid]
	if owners == nil {
		owners, times = make(map[ownedField]string), make(map[string]time.Time)
		m.owners[uid], m.times[uid] = owners, times
	}
	var changed []ownedField
	for f, text := range after {
		if was, had := before[f]; !had || was != text {
			changed, byUs = append(changed, f), byUs || isWrittenByUs(f.annotation)
		}
	}
	removed := false
	for f := range before {
		if _, kept := after[f]; !kept {
			delete(owners, f)
			removed, byUs = true, byUs || isWrittenByUs(f.annotation)
		}
	}
	if len(changed) == 0 && !removed {
		return // of the status
	}
	switch {
	case by == "" && byUs:
		by = workload.FieldManager
	case by == "":
		by = "person"
	}
	times[by] = time.Now()
	for _, f := range changed {
		owners[f] = by
	}
	object.SetManagedFields(entriesOf(owners, times))
}

// entriesOf returns managedFields, the oldest entry first. A manager that owns nothing has none.
func entriesOf(owners map[ownedField]string, times map[string]time.Time) []metav1.ManagedFieldsEntry {
	owned := make(map[string][]ownedField)
	for f, by := range owners {
		owned[by] = append(owned[by], f)
	}
	order := slices.SortedFunc(maps.Keys(owned), func(a, b string) int {
		if by := times[a].Compare(times[b]); by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
	entries := make([]metav1.ManagedFieldsEntry, 0, len(order))
	for _, by := range order {
		at := metav1.NewTime(times[by].Truncate(time.Second))
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &at,
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
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// ownedFieldsOf returns the fields of a workload and what they have.
func ownedFieldsOf(object runtime.Object) map[ownedField]string {
	object = object.DeepCopyObject()
	own, pod := partsOf(object)
	fields := make(map[ownedField]string)
	for name, text := range own.Annotations {
		fields[ownedField{annotation: name}] = text
	}
	for name, text := range pod.Annotations {
		fields[ownedField{annotation: name, ofPods: true}] = text
	}
	pod.Annotations = nil
	text, err := json.Marshal(specOf(object))
	if err != nil {
		panic(err)
	}
	fields[ownedField{}] = string(text)
	return fields
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
