package workload

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheWritesOfTheActuatorAreToldFromThoseOfOthers(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 14, 15, minute, 0, 0, time.UTC) }
	entry := func(manager, subresource string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: at(minute)}}
	}
	w, ok := Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", ManagedFields: []metav1.ManagedFieldsEntry{
		entry("helm", "", 1), entry("kubectl", "", 2), entry(FieldManager, "", 3), entry("kube-controller-manager", "status", 4),
	}}}, Reading{})
	if !ok {
		t.Fatal("it cannot be read")
	}
	if !w.Edited.Equal(at(2)) || !w.Patched.Equal(at(3)) || !w.Written.Equal(at(3)) {
		t.Errorf("edited at %s, patched at %s, written at %s", w.Edited, w.Patched, w.Written)
	}
}
