package kinds

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// managedBy is what managedFields say of a manager that has written at a time.
func managedBy(manager string, at time.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Time: &metav1.Time{Time: at}}
}

func TestAChangeSoonAfterAnotherSaysWhoHasWrittenTheSource(t *testing.T) {
	status := managedBy("kubelet", epoch.Add(time.Second))
	status.Subresource = "status"
	for _, tt := range []struct {
		name string
		// before is how long before the change the source was written, and known is who has written it then, by the last event.
		before  time.Duration
		known   []string
		managed []metav1.ManagedFieldsEntry
		want    []string
	}{
		{
			name: "both of two, and not who has written it long ago", before: time.Second, want: []string{"external-secrets", "pgo"},
			managed: []metav1.ManagedFieldsEntry{
				managedBy("helm", epoch.Add(-time.Hour)), managedBy("pgo", epoch.Add(-time.Second)), managedBy("external-secrets", epoch), status,
			},
		},
		{
			name: "the one whose fields the other has taken over, and not who was before", before: time.Minute, want: []string{"external-secrets", "pgo"},
			known: []string{"pgo", "helm"}, managed: []metav1.ManagedFieldsEntry{managedBy("external-secrets", epoch)},
		},
		{
			name: "the same one again", before: time.Minute, want: []string{"vso"}, known: []string{"vso"},
			managed: []metav1.ManagedFieldsEntry{managedBy("vso", epoch)},
		},
		{name: "nobody if it comes later", before: events.Soon, known: []string{"vso"}, managed: []metav1.ManagedFieldsEntry{managedBy("vso", epoch)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ring := keyringOf(1)
			objectOf := func(version string, written time.Time, data content, managed ...metav1.ManagedFieldsEntry) *Object {
				return newObject(ring, testSource.Kind, &metav1.ObjectMeta{
					Namespace: testSource.Namespace, Name: testSource.Name, UID: "u", ResourceVersion: version,
					CreationTimestamp: metav1.NewTime(epoch.Add(-24 * time.Hour)), ManagedFields: append(managed, managedBy("", written)),
				}, data.data())
			}
			earlier, _ := compare(nil, objectOf("1", epoch.Add(-tt.before), content{"a": "1"}), false)
			earlier.Writers = tt.known
			change, ok := compare(mustLast(t, earlier), objectOf("2", epoch, content{"a": "2"}, tt.managed...), false)
			if !ok {
				t.Fatal("there is no event")
			}
			testkit.WantEqual(t, "writers", tt.want, change.Writers)
		})
	}
}

func TestOfAnObjectAsItWasCreatedNobodyIsKept(t *testing.T) {
	meta := &metav1.ObjectMeta{
		CreationTimestamp: metav1.NewTime(epoch), ManagedFields: []metav1.ManagedFieldsEntry{managedBy("kubectl", epoch.Add(time.Second))},
	}
	if got := writersOf(meta, newestWrite(meta)); got != nil {
		t.Errorf("got %q", got.names)
	}
}
