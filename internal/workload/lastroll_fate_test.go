package workload

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The sets of fields of those who write what a roll writes.
const (
	ownsRevision = `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:keyturn.dev/revision":{}}}}}}`
	ownsRolled   = `{"f:metadata":{"f:annotations":{".":{},"f:keyturn.dev/rolled":{}}}}`
	ownsMark     = `{"f:metadata":{"f:annotations":{".":{},"f:keyturn.dev/last":{},"f:keyturn.dev/rolled":{}}}}`
)

// ownedBy is what managedFields say of an update by a manager.
func ownedBy(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields)}
}

// undoable is the Deployment web with a mark, a revision on its pod template and an image. The actuator wrote the mark, unless others are given.
func undoable(t *testing.T, mark, revision, image string, managers ...metav1.ManagedFieldsEntry) *Workload {
	t.Helper()
	d := webDeployment("50", rollOn("auto"))
	if mark != "" {
		d.Annotations[annotationLast] = lastRoll(func(l *Last) { l.Revision = mark }).format()
	}
	if revision != "" {
		d.Spec.Template.Annotations = map[string]string{annotationRevision: revision}
	}
	d.Spec.Template.Spec.Containers[0].Image = image
	d.ManagedFields = append([]metav1.ManagedFieldsEntry{ownedBy(FieldManager, ownsMark)}, managers...)
	if len(managers) > 0 && managers[0].Manager == FieldManager {
		d.ManagedFields = managers
	}
	return readAs(t, deployments, d, Reading{})
}

func TestWhatBecomesOfARollIsSeenFromTheWorkload(t *testing.T) {
	kubectl, record := ownedBy("kubectl", ownsRevision), ownedBy("kubectl", ownsRolled)
	operator, nothingOurs := ownedBy("operator", ownsRevision), ownedBy(FieldManager, `{}`)
	live := func(ended bool) Seen { return Seen{Before: undoable(t, "r2", "r2", "a"), Ended: ended} }
	start := func(ended bool, ago time.Duration) Seen {
		return Seen{Ended: ended, Since: written.Add(ago - 10*time.Minute)}
	}
	justNow, longAgo := time.Minute, time.Hour
	tests := []struct {
		name string
		now  *Workload
		seen Seen
		want Fate
	}{
		{"its revision is on the pod template", undoable(t, "r2", "r2", "a"), live(false), RollStands},
		{"an operator put back the one before", undoable(t, "r2", "r1", "a", operator), live(false), RollReverted},
		{"an operator put it back once it was complete", undoable(t, "r2", "r1", "a", operator), live(true), RollStands},
		{"somebody wrote another pod template", undoable(t, "r2", "", "b"), live(false), RollSuperseded},
		{"a person put back the one before", undoable(t, "r2", "r1", "a", kubectl), live(false), RollUndone},
		{"a person put back the record of a Deployment, too", undoable(t, "r1", "r1", "a", nothingOurs, kubectl, record), live(false), RollUndone},

		{"a start finds another one", undoable(t, "r2", "r1", "a", operator), start(false, justNow), RollReverted},
		{"a start finds another one long after", undoable(t, "r2", "r1", "a", operator), start(false, longAgo), RollStands},
		{"a start finds one that a person put back", undoable(t, "r2", "r1", "a", kubectl), start(false, justNow), RollUndone},
		{"a start finds a record that a person put back", undoable(t, "r1", "r1", "a", nothingOurs, kubectl, record), start(true, longAgo), RollUndone},
		{"a start finds a mark of somebody else", undoable(t, "r2", "r1", "a", nothingOurs), start(false, justNow), RollStands},
	}
	for _, test := range tests {
		if got := test.now.Fate(test.seen); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// This is a known limit: managedFields do not say who has removed an annotation.
func TestTheFirstRollOfAStatefulSetOrADaemonSetThatAPersonUndidCountsAsReverted(t *testing.T) {
	template := webDeployment("50", nil).Spec.Template
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50",
		Annotations:   map[string]string{annotationLast: lastRoll(nil).format(), annotationRolled: "{}"},
		ManagedFields: []metav1.ManagedFieldsEntry{ownedBy(FieldManager, ownsMark)},
	}
	rolled := *template.DeepCopy()
	rolled.Annotations = map[string]string{annotationRevision: lastRoll(nil).Revision}
	before := readAs(t, statefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: rolled}}, Reading{})
	after := readAs(t, statefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}}, Reading{})
	if got := after.Fate(Seen{Before: before}); got != RollReverted {
		t.Errorf("got %s", got)
	}
}
