package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// How far the rollout of a workload may be.
var (
	rolledOut     = Progress{State: Complete, Pods: 1}
	rollingOut    = Progress{State: Progressing, Pods: 1}
	givenUp       = Progress{State: Failed, Pods: 1}
	crashingSince = Progress{State: Progressing, Unready: true, Pods: 1}
)

// afterRoll is a workload with a mark, at its revision or at another one, and with a record of the change of db.
func afterRoll(last Last, revision string, progress Progress) *Workload {
	return &Workload{
		record:       record{Last: last, Revision: revision, Rolled: map[string]RolledFor{"secret/db": {Version: "123", UID: "u"}}},
		rolloutState: rolloutState{Progress: progress},
	}
}

func TestAMarkSaysWhatBecomesOfItsRoll(t *testing.T) {
	const at, elsewhere = "2f6e9a530d3c1b0f", "r0"
	fine, failing := lastRoll(nil), lastRoll(func(l *Last) { l.Was = wasFailing })
	failed := lastRoll(func(l *Last) { l.Failed, l.Since, l.With = "timed-out", written, Marked{"configmap/app@99/u"} })
	repairing := lastRoll(func(l *Last) { l.With = Marked{"configmap/app@99/u"} })
	inPlace := lastRoll(func(l *Last) { l.Revision = "" })
	all := Marked{failed.For[0], failed.With[0]}
	tests := []struct {
		name                         string
		w                            *Workload
		rolling, failed, failsBefore bool
		suspects                     Marked
	}{
		{"it is in progress", afterRoll(fine, at, rollingOut), true, false, false, nil},
		{"it is complete", afterRoll(fine, at, rolledOut), false, false, false, nil},
		{"it was complete, and pods crash since", afterRoll(fine, at, crashingSince), false, false, true, nil},
		{"its controller has given up, which nobody has noted", afterRoll(fine, at, givenUp), true, false, false, nil},
		{"it has failed", afterRoll(failed, at, givenUp), true, true, false, all},
		{"it had failed and was undone", afterRoll(failed, elsewhere, rolledOut), false, false, false, all},
		{"the workload was failing before", afterRoll(failing, at, rollingOut), true, false, true, nil},
		{"it is to repair one that failed", afterRoll(repairing, at, rollingOut), true, false, false, repairing.With},
		{"it was to repair one that failed, and was undone", afterRoll(repairing, elsewhere, rollingOut), false, false, false, repairing.With},
		{"the pods reloaded in place", afterRoll(inPlace, at, rolledOut), false, false, false, nil},
		{"there is no mark", afterRoll(Last{}, at, rollingOut), false, false, false, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := [...]bool{test.w.IsRolling(), test.w.HasFailed(), test.w.FailsBefore()}
			if want := [...]bool{test.rolling, test.failed, test.failsBefore}; got != want {
				t.Errorf("it is rolling, has failed, and fails before the next roll: %t, want %t", got, want)
			}
			testkit.WantEqual(t, "suspects", test.suspects, test.w.Suspects(), cmpopts.EquateEmpty())
		})
	}
}

// A release may break what was rolled before, and leaves the revision on the pod template.
func TestWhatFailsAfterARollWasCompleteFailsBeforeTheNextOne(t *testing.T) {
	last := lastRoll(func(l *Last) { l.With = Marked{"configmap/app@99/u"} })
	for _, tt := range []struct {
		name                 string
		states               []Progress
		rolling, failsBefore bool
		suspects             Marked
	}{
		{"it was complete, and a release has failed", []Progress{rollingOut, rolledOut, rollingOut, givenUp}, false, true, nil},
		{"it was complete, and a release is in progress", []Progress{rollingOut, rolledOut, rollingOut}, false, false, nil},
		{"it was never complete", []Progress{rollingOut, givenUp}, true, false, last.With},
		{"it had no pods, or not yet those of a Rollout", []Progress{{State: Complete}, rollingOut, givenUp}, true, false, last.With},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w *Workload
			for _, progress := range tt.states {
				w = afterRoll(last, last.Revision, progress).After(w, true)
			}
			if w.IsRolling() != tt.rolling || w.FailsBefore() != tt.failsBefore {
				t.Errorf("it is rolling: %t, and fails before the next roll: %t; want %t, %t", w.IsRolling(), w.FailsBefore(), tt.rolling, tt.failsBefore)
			}
			testkit.WantEqual(t, "suspects", tt.suspects, w.Suspects(), cmpopts.EquateEmpty())
		})
	}
	if told := afterRoll(last, last.Revision, givenUp).Completed(last.Revision); told.IsRolling() || !told.FailsBefore() {
		t.Error("an outcome says that it was complete, and it counts as in progress")
	}
}

func TestAListOfAMarkHasItsChanges(t *testing.T) {
	this, later := RolledFor{Version: "123", UID: "u"}, RolledFor{Version: "124", UID: "u"}
	recorded := this
	recorded.Fingerprint = fp("x")
	w := afterRoll(Last{}, "", rolledOut)
	w.Rolled["secret/db"] = recorded
	tests := []struct {
		name string
		list Marked
		want map[string]RolledFor
	}{
		{"one that is in the record, with its fingerprint", Marked{changeText("secret/db", this)}, map[string]RolledFor{"secret/db": recorded}},
		{"what is in the record, if it leaves some out", Marked{"configmap/app@124/u", "+1"}, map[string]RolledFor{"configmap/app": later, "secret/db": recorded}},
		{"nothing, of another text", Marked{"secret", ""}, nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, w.ChangesIn(test.list), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestNoChangeIsBlamedIfTheWorkloadWasFailingBefore(t *testing.T) {
	last := Last{Revision: "r1", For: Marked{"secret/db@123/u"}, With: Marked{"configmap/app@99/u"}}
	if got := afterRoll(last, "r1", givenUp).Blamed(); len(got) != 2 {
		t.Errorf("got %v, want both changes", got)
	}
	last.Was = wasFailing
	if got := afterRoll(last, "r1", givenUp).Blamed(); got != nil {
		t.Errorf("it was failing before: got %v", got)
	}
}

func TestTheMarkOfARollKeepsWhatMayBeWhyTheOneBeforeFailed(t *testing.T) {
	const at = "2f6e9a530d3c1b0f"
	of := func(list ...string) Last { return lastRoll(func(l *Last) { l.For = list }) }
	failed := func(last Last) Last {
		last.Failed, last.Since = "timed-out", written
		return last
	}
	suspected := func(last Last, with ...string) Last {
		last.With = with
		return last
	}
	// The roll is for a change of db, and then for one of app.
	write := Write{
		Rolls: true, RolledAt: written.Add(1500 * time.Millisecond),
		Changes: []Change{{Source: db}, {Source: app}},
		Rolled:  map[string]RolledFor{"secret/db": entryAt("x", "130", "u"), "configmap/app": entryAt("x", "140", "u")},
	}
	tests := []struct {
		name string
		w    *Workload
		was  string
		with Marked
	}{
		{"the first roll", afterRoll(Last{}, "", rolledOut), wasFine, nil},
		{"one that replaces a roll in progress", afterRoll(of("secret/other@1/u"), at, rollingOut), wasFine, Marked{"secret/other@1/u"}},
		{"one that replaces a failed roll", afterRoll(failed(of("secret/other@1/u")), at, givenUp), wasFine, Marked{"secret/other@1/u"}},
		{
			"one that replaces a roll that was to repair another", afterRoll(suspected(of("secret/other@1/u"), "secret/more@2/u", "+2"), at, rollingOut),
			wasFine,
			Marked{"secret/other@1/u", "secret/more@2/u", "+2"},
		},
		{"one for a newer change of what failed", afterRoll(failed(of("secret/db@123/u", "secret/db@home@1/u")), at, givenUp), wasFine, Marked{"secret/db@home@1/u"}},
		{"one that replaces a roll of a workload that was failing before", afterRoll(lastRoll(func(l *Last) { l.Was, l.For = wasFailing, nil }), at, rollingOut), wasFailing, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := append(Marked{}, test.w.Last.For...)
			want := Last{At: written.Add(time.Second), For: Marked{"configmap/app@140/u", "secret/db@130/u"}, With: test.with, Was: test.was}
			if diff := cmp.Diff(want, test.w.NextLast(write), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			testkit.WantEqual(t, "the mark of before is changed", before, test.w.Last.For, cmpopts.EquateEmpty())
		})
	}
}

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
		{"somebody wrote another pod template", undoable(t, "r2", "", "b"), live(false), RollStands},
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
