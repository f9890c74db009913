package workload

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheWritesOfTheActuatorAreToldFromThoseOfOthers(t *testing.T) {
	at := func(minute int) time.Time { return written.Add(time.Duration(minute) * time.Minute) }
	entry := func(manager, subresource string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: at(minute)}}
	}
	tests := []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		// manager is that of the last write by another one, and isLast says that the actuator wrote before it.
		manager         string
		isLast          bool
		edited, patched time.Time
	}{
		{"nobody is known", nil, "", false, time.Time{}, time.Time{}},
		{"the later one of a second", []metav1.ManagedFieldsEntry{entry("helm", "", 1), entry("operator", "", 1)}, "operator", false, at(1), time.Time{}},
		{"after the actuator", []metav1.ManagedFieldsEntry{entry(FieldManager, "", 2), entry("operator", "", 3)}, "operator", true, at(3), at(2)},
		{
			"in the same second as the actuator",
			[]metav1.ManagedFieldsEntry{entry("operator", "", 2), entry(FieldManager, "", 2)},
			"operator", true, at(2), at(2),
		},
		{
			"before the actuator, and a controller wrote the status",
			[]metav1.ManagedFieldsEntry{entry("kubectl", "", 2), entry(FieldManager, "", 3), entry("kube-controller-manager", "status", 4)},
			"kubectl", false, at(2), at(3),
		},
	}
	for _, test := range tests {
		got := readAs(t, deployments, recordedBy("10", "", test.entries...), Reading{})
		if got.Manager != test.manager || got.ManagerIsLast != test.isLast {
			t.Errorf("%s: got %q, the last: %t, want %q, %t", test.name, got.Manager, got.ManagerIsLast, test.manager, test.isLast)
		}
		if !got.Edited.Equal(test.edited) || !got.Patched.Equal(test.patched) || !got.Written.Equal(later(test.edited, test.patched)) {
			t.Errorf("%s: edited at %s, patched at %s, written at %s", test.name, got.Edited, got.Patched, got.Written)
		}
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

// recordedBy is the Deployment web with a record, if it has one, and managedFields. It was created when entryOf was written.
func recordedBy(version, record string, entries ...metav1.ManagedFieldsEntry) *appsv1.Deployment {
	annotations := rollOn("auto")
	if record != "" {
		annotations[annotationRolled] = record
	}
	d := webDeployment(version, annotations)
	d.ManagedFields, d.CreationTimestamp = entries, metav1.NewTime(written)
	return d
}

func TestARecordThatOthersWriteDoesNotCount(t *testing.T) {
	record := func(version string) string { return `{"secret/db":"` + fp("a") + "@" + version + `/u"}` }
	ours, undone, removed := entryOf(FieldManager, ownsRecord), entryOf("kubectl", ownsRecord), entryOf(FieldManager, "{}")
	ofTemplate := `{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:keyturn.dev/rolled":{}}}}}}`
	applied, earlier := ours, ours
	applied.Operation, earlier.Time = metav1.ManagedFieldsOperationApply, &metav1.Time{Time: written.Add(-time.Minute)}
	created := func(entries ...metav1.ManagedFieldsEntry) []*appsv1.Deployment {
		return []*appsv1.Deployment{recordedBy("10", record("5"), entries...)}
	}
	tests := []struct {
		name   string
		states []*appsv1.Deployment
		// want is the version in the record, empty if there is none, and lost says that it must be written again.
		want string
		lost bool
	}{
		{"nothing is said", created(), "5", false},
		{"the actuator wrote it", created(entryOf("kubectl", ofTemplate), ours), "5", false},
		{"the actuator was one of many managers", created(entryOf(ancientManager, ownsRecord)), "5", false},
		{"the workload was created with it", created(undone, entryOf(FieldManager, ofTemplate)), "", false},
		{"it was applied", created(applied), "", false},
		{"it was written before the object was created, to one that is gone", created(earlier), "", false},
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
		testkit.Must(t, err)
		_, want := fields[path[0]][path[1]][path[2]]
		if got := owns(encoded, path...); got != want {
			t.Errorf("%s has it: got %t, want %t", encoded, got, want)
		}
	})
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
