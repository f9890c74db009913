package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
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

func TestANamespaceOnHoldHoldsItsWorkloadsOverARestart(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.annotateNamespace("keyturn.dev/hold", `"moving"`)
	r.start()
	before := r.tally()
	r.set(events.KindSecret, "db", "password", "two")
	r.isHeld("web", "on-hold", "namespace "+r.namespace+": moving")
	if got := r.explain("deployment/web"); !strings.Contains(got, "It is on hold: namespace NAMESPACE: moving (on-hold).") {
		t.Errorf("explain says\n%s", got)
	}
	r.stop(r.actuator)
	r.startActuator()
	r.set(events.KindSecret, "db", "password", "three")
	r.eventually("the last content is held", func(context.Context) bool { return len(r.told(events.VerbHeld)) == 2 })
	if got := r.tally().since(before); len(got) != 0 {
		t.Errorf("on hold it is rolled: %v", got)
	}
	r.annotateNamespace("keyturn.dev/hold", "null")
	r.eventually("it is rolled", func(context.Context) bool { return r.tally().since(before)["deployment/web"] > 0 })
	r.hasRolledForTheLast("deployment/web", events.Source{Kind: events.KindSecret, Name: "db"})
	r.quiet()
	if got := r.tally().since(before); got["deployment/web"] != 1 {
		t.Errorf("it is rolled %v, want once", got)
	}
}
