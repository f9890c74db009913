package workload

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownsRecord is a set of fields with the record, and of others as they are beside it.
const ownsRecord = `{"f:metadata":{"f:annotations":{".":{},"f:keyturn.dev/rolled":{},"f:keyturn.dev/rolls":{}}},"f:spec":{"f:template":{` +
	`"f:metadata":{"f:annotations":{"f:keyturn.dev/revision":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`

// entryOf is what managedFields say about the writes of a manager.
func entryOf(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: written}, FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// recordedBy is the Deployment web with a record, if it has one, and managedFields.
func recordedBy(version, record string, entries ...metav1.ManagedFieldsEntry) *appsv1.Deployment {
	annotations := rollOn("auto")
	if record != "" {
		annotations[annotationRolled] = record
	}
	d := webDeployment(version, annotations)
	d.ManagedFields = entries
	return d
}

func TestAnAnnotationIsOursIfManagedFieldsSaySo(t *testing.T) {
	ofTemplate := `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:keyturn.dev/rolled":{}}}}}}`
	change := func(how func(*metav1.ManagedFieldsEntry)) metav1.ManagedFieldsEntry {
		entry := entryOf(FieldManager, ownsRecord)
		how(&entry)
		return entry
	}
	of := func(entries ...metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return entries }
	kubectl := entryOf("kubectl", ownsRecord)
	const record = `{}`
	tests := []struct {
		name, record string
		entries      []metav1.ManagedFieldsEntry
		want         bool
	}{
		{"nothing is said", record, nil, true},
		{"the actuator wrote it", record, of(entryOf("kubectl", ofTemplate), entryOf(FieldManager, ownsRecord)), true},
		{"it was one of many managers", record, of(entryOf(ancientManager, ownsRecord)), true},
		{"`kubectl rollout undo` wrote it", record, of(kubectl, entryOf(FieldManager, ofTemplate)), false},
		{"the actuator wrote other annotations", record, of(entryOf(FieldManager, `{"f:metadata":{"f:annotations":{"f:keyturn.dev/rolls":{}}}}`)), false},
		{"the actuator wrote a label of the name", record, of(entryOf(FieldManager, `{"f:metadata":{"f:labels":{"f:keyturn.dev/rolled":{}}}}`)), false},
		{"it was applied", record, of(change(func(e *metav1.ManagedFieldsEntry) { e.Operation = metav1.ManagedFieldsOperationApply })), false},
		{"the time is not said", record, of(change(func(e *metav1.ManagedFieldsEntry) { e.Time = nil })), true},
		{"it was written before the object was created, to one that is gone", record, of(change(func(e *metav1.ManagedFieldsEntry) {
			e.Time = &metav1.Time{Time: written.Add(-time.Minute)}
		})), false},
		{"it was written as the object was created, by another clock", record, of(change(func(e *metav1.ManagedFieldsEntry) {
			e.Time = &metav1.Time{Time: written.Add(-createdTolerance)}
		})), true},
		{"somebody has removed it", "", of(entryOf(FieldManager, ofTemplate)), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := recordedBy("10", test.record, test.entries...)
			d.CreationTimestamp = metav1.NewTime(written)
			if got := isOurs(&d.ObjectMeta, annotationRolled); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestARecordThatOthersWriteDoesNotCount(t *testing.T) {
	record := func(version string) string { return `{"secret/db":"` + fp("a") + "@" + version + `/u"}` }
	ours, undone, removed := entryOf(FieldManager, ownsRecord), entryOf("kubectl", ownsRecord), entryOf(FieldManager, "{}")
	tests := []struct {
		name   string
		states []*appsv1.Deployment
		// want is the version in the record, empty if there is none, and lost says that it must be written again.
		want string
		lost bool
	}{
		{"the actuator wrote it", []*appsv1.Deployment{recordedBy("10", record("5"), ours)}, "5", false},
		{"the workload was created with it", []*appsv1.Deployment{recordedBy("10", record("5"), undone)}, "", false},
		{"an earlier one is back", []*appsv1.Deployment{recordedBy("10", record("8"), ours), recordedBy("11", record("5"), undone)}, "8", true},
		{"it is removed", []*appsv1.Deployment{recordedBy("10", record("8"), ours), recordedBy("11", "", removed)}, "8", true},
		{"it is removed where managedFields are dropped", []*appsv1.Deployment{recordedBy("10", record("8")), recordedBy("11", "")}, "8", true},
		{
			"it stays removed while others write",
			[]*appsv1.Deployment{recordedBy("10", record("8"), ours), recordedBy("11", "", removed), recordedBy("12", record("3"), undone)},
			"8", true,
		},
		{
			"the actuator has written it again",
			[]*appsv1.Deployment{recordedBy("10", record("8"), ours), recordedBy("11", "", removed), recordedBy("12", record("8"), ours)},
			"8", false,
		},
		{
			"another workload of the name was created",
			[]*appsv1.Deployment{recordedBy("10", record("8"), ours), func() *appsv1.Deployment {
				d := recordedBy("11", record("5"), undone)
				d.UID = "another"
				return d
			}()},
			"", false,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var w *Workload
			for _, state := range test.states {
				read := readAs(t, deployments, state, Reading{})
				w = read.After(w, true)
			}
			if got := w.Rolled["secret/db"].Version; got != test.want || w.IsRecordLost() != test.lost {
				t.Errorf("got version %q, lost: %t; want %q, %t", got, w.IsRecordLost(), test.want, test.lost)
			}
		})
	}
}

// The API server makes nobody the manager of a value that is there already.
func TestARecordThatOthersHaveWrittenAlikeIsWrittenInAnotherForm(t *testing.T) {
	const record = `{"secret/db":"k1:a@5/u"}`
	read := func(record string, entry metav1.ManagedFieldsEntry) *Workload {
		return readAs(t, deployments, recordedBy("10", record, entry), Reading{})
	}
	write := Write{Rolls: true, Rolled: map[string]RolledFor{"secret/db": {Fingerprint: "k1:a", Version: "5", UID: "u"}}}
	for manager, want := range map[string]string{"kubectl": record + " ", FieldManager: record} {
		p := patchFor(t, deployments, read(record, entryOf(manager, ownsRecord)), write)
		got, _ := writtenBy(t, p, annotationRolled)
		if got != want {
			t.Errorf("of %s: got %q, want %q", manager, got, want)
		}
		again := read(want, entryOf(FieldManager, ownsRecord))
		if revision := revisionOf(want, ""); revision != p.Revision || again.Rolled["secret/db"].Version != "5" {
			t.Errorf("of %s: the revision of the roll is %s, and that of the record %s: %v", manager, p.Revision, revision, again.Rolled)
		}
	}
}

func FuzzOwns(f *testing.F) {
	f.Add(ownsRecord)
	f.Add(`{}`)
	f.Add(`{"f:metadata":{"f:annotations":{}},"f:keyturn.dev/rolled":{}}`)
	f.Add(`{"f:metadata":{"f:labels":{"f:keyturn.dev/rolled":{}}},"f:annotations":{"f:keyturn.dev/rolled":{}}}`)
	f.Add(`{"k:{\"f:metadata\":\"}\"}":{"v:\"{\"":{}},"f:metadata":{"f:annotations":{"f:keyturn.dev/rolled":{}}}}`)
	f.Add(`}}"f:metadata"`)
	f.Add(`{"f:metadata\`)
	path := []string{"f:metadata", "f:annotations", "f:" + annotationRolled}
	f.Fuzz(func(t *testing.T, text string) {
		owns([]byte(text), path...)
		type set map[string]set
		var fields set
		if json.Unmarshal([]byte(text), &fields) != nil {
			return
		}
		// The form that the API server writes.
		encoded, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		_, want := fields[path[0]][path[1]][path[2]]
		if got := owns(encoded, path...); got != want {
			t.Errorf("%s has it: got %t, want %t", encoded, got, want)
		}
	})
}
