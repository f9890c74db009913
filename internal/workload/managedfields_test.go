package workload

import (
	"encoding/json"
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
		{"it was applied", record, of(change(func(e *metav1.ManagedFieldsEntry) { e.Operation = metav1.ManagedFieldsOperationApply })), false},
		{"it was written before the object was created, to one that is gone", record, of(change(func(e *metav1.ManagedFieldsEntry) {
			e.Time = &metav1.Time{Time: written.Add(-time.Minute)}
		})), false},
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
		{"the actuator has written it again", []*appsv1.Deployment{recordedBy("10", record("8"), ours), recordedBy("11", "", removed), recordedBy("12", record("8"), ours)}, "8", false},
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

func TestTheManagerOfTheLastWriteIsKnown(t *testing.T) {
	at := func(manager, subresource string, seconds int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: written.Add(time.Duration(seconds) * time.Second)},
		}
	}
	tests := []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    string
		isLast  bool
	}{
		{"nobody is known", nil, "", false},
		{"the later one of a second", []metav1.ManagedFieldsEntry{at("helm", "", 1), at("operator", "", 1)}, "operator", false},
		{"after the actuator", []metav1.ManagedFieldsEntry{at(FieldManager, "", 2), at("operator", "", 3)}, "operator", true},
		{"in the same second as the actuator", []metav1.ManagedFieldsEntry{at("operator", "", 2), at(FieldManager, "", 2)}, "operator", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got object
			got.readWrites(&metav1.ObjectMeta{ManagedFields: test.entries})
			if got.Manager != test.want || got.ManagerIsLast != test.isLast {
				t.Errorf("got %q, the last: %t, want %q, %t", got.Manager, got.ManagerIsLast, test.want, test.isLast)
			}
		})
	}
}

// The API server gives the name of its program to a client that names no field manager.
func TestPeopleAreToldFromToolsByTheirFieldManagers(t *testing.T) {
	const other = `{"f:metadata":{"f:annotations":{"f:keyturn.dev/hold":{}},"f:labels":{"f:keyturn.dev/rolled":{}}},"f:spec":{"f:replicas":{}}}`
	update := metav1.ManagedFieldsOperationUpdate
	tests := []struct {
		manager             string
		operation           metav1.ManagedFieldsOperationType
		subresource, fields string
		want                bool
	}{
		{"kubectl", update, "", ownsRevision, true},
		{"kubectl", update, "", ownsRolled, true},
		{"kubectl.exe", update, "", ownsRevision, true},
		{"oc", update, "", ownsRevision, true},

		{"kubectl", metav1.ManagedFieldsOperationApply, "", ownsRevision, false},
		{"kubectl", update, "status", ownsRevision, false},
		{"kubectl", update, "scale", other, false},
		{"kubectl", update, "", other, false},
		{"kubectl-replace", update, "", ownsRevision, false},
		{"kubectl-rollout", update, "", ownsRevision, false},
		{ancientManager, update, "", ownsRevision, false},
		{FieldManager, update, "", ownsRevision, false},
	}
	for _, test := range tests {
		entry := ownedBy(test.manager, test.fields)
		entry.Operation, entry.Subresource = test.operation, test.subresource
		got := undoneBy(&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{ownedBy("helm", other), entry}})
		if want := test.manager; got != want && test.want || got != "" && !test.want {
			t.Errorf("%s of %q, subresource %q: got %q, want that it undoes: %t", test.operation, test.manager, test.subresource, got, test.want)
		}
	}
	if got := undoneBy(&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: update}}}); got != "" {
		t.Errorf("of an entry without fields: got %q", got)
	}
}
