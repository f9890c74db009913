package project

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// another are the fields of who has created the widget.
var another = []metav1.ManagedFieldsEntry{{
	Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:auth":{"f:password":{}}}}`),
}}

func TestAnotherOwnerOfAFieldIsToldBeforeThereIsAConflict(t *testing.T) {
	b := newBench(t)
	due := 0
	b.index.changed = func(key) { due++ }
	b.secret("a")
	created := equal("a")
	created.SetManagedFields(another)
	must(t, b.store.Update(created))
	b.shared = true
	b.steps(1)
	if due != 2 || b.applied != 1 {
		t.Errorf("due %d times, written %d times, want twice, the second time for the write of the same value", due, b.applied)
	}
	b.steps(3)
	b.reports("shared")
	for _, told := range b.bus.has {
		if told.Verb != events.VerbFailed || !strings.HasPrefix(told.Message, "Another field manager owns spec.auth.password, too:") {
			t.Errorf("got %s: %s", told.Verb, told.Message)
		}
	}
	b.wroteEvents(1)
	b.add(b.main, testCause())
	b.steps(1)
	b.reports("shared", "shared") // for the change of the Secret
	b.sees(wantsDB, "a")
	if due != 3 {
		t.Errorf("due %d times, want once more when the other one gives the field up", due)
	}
	b.steps(2)
	b.reports("shared", "shared", "recovered")
	if b.applied != 1 {
		t.Errorf("written %d times, want once", b.applied)
	}
}
