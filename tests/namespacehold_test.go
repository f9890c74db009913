package tests

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// annotateNamespace sets an annotation of the namespace. Null removes it.
func (r *rig) annotateNamespace(annotation, value string) {
	r.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotation, value)
	if _, err := r.client.CoreV1().Namespaces().Patch(
		r.Context(), r.namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{},
	); err != nil {
		r.Fatal(err)
	}
}

// holdsANamespace is for a namespace that was on hold when the programs started. Its Deployment moved is to roll once that is taken off.
func (r *rig) holdsANamespace() {
	r.Helper()
	// Without a record, an actuator that leads without a Lease does not know what the one before it has held.
	r.awaitRecords()
	before := r.tally()
	r.set(events.KindSecret, "moved", "password", "two")
	r.isHeld("moved", "on-hold", "namespace "+r.namespace+": moving")
	if got := r.explain("deployment/moved"); !strings.Contains(got, "It is on hold: namespace NAMESPACE: moving (on-hold).") {
		r.Errorf("explain says\n%s", got)
	}
	r.stop(r.actuator)
	r.startActuator()
	r.eventually("the next leader has begun", func(context.Context) bool {
		return len(lines(r.actuator.Output(), `"msg":"workload held"`, `"workload":"deployment/moved"`)) > 0
	})
	r.set(events.KindSecret, "moved", "password", "three")
	r.eventually("the next leader has the last content", func(context.Context) bool {
		return strings.Contains(r.actuator.Output(), `"msg":"event received","component":"actuator","source":"secret/moved"`)
	})
	if got := r.tally().since(before); len(got) != 0 {
		r.Errorf("on hold it is rolled: %v", got)
	}
	r.annotateNamespace("keyturn.dev/hold", "null")
	r.eventually("it is rolled", func(context.Context) bool { return r.seen().since(before)["deployment/moved"] > 0 })
	r.hasRolledForTheLast("deployment/moved", events.Source{Kind: events.KindSecret, Name: "moved"})
	r.awaitEndOfLastRoll("moved")
	testkit.WantEqual(r, "rollouts when the hold is taken off", once("deployment/moved"), r.tally().since(before))
}
