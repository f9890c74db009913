package tests

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestADeletionRollsWhoCanStartWithoutTheSource(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--roll-on-delete"}})
	r.placeFence()
	// One can start without its Secret, one cannot, and one only names it.
	r.create(workload{name: "optional", on: "auto", read: optionalAll(events.KindSecret, "db")})
	r.create(workload{name: "required", on: "auto", read: readsAll(events.KindSecret, "db")})
	r.create(workload{name: "named", on: "secret/db", read: readsNothing(events.KindSecret, "db")})
	all, optional := once("statefulset/optional", "statefulset/required", "statefulset/named"), once("statefulset/optional", "statefulset/named")
	db := func(value string) { r.write(events.KindSecret, "db", map[string]string{"a": value}) }
	db("one")
	r.start()

	r.rolls("the Secret is deleted", optional, func() { r.remove(events.KindSecret, "db") })
	r.rollsNothing("both programs start once more", func() {
		r.stop(r.watcher)
		r.stop(r.actuator)
		r.start()
	})
	r.rolls("it is created with the content that it had", optional, func() { db("one") })
	r.rolls("it changes", all, func() { db("two") })
	r.rolls("it is deleted while both programs are down", optional, func() {
		r.stop(r.watcher)
		r.stop(r.actuator)
		r.remove(events.KindSecret, "db")
		r.start() // The actuator has read the stream when the watcher sees that it is gone.
	})
	r.rolls("it is created with other content", all, func() { db("three") })
	r.step("the deletion of the namespace rolls nothing", (*rig).deletesTheNamespace)
}

// deletesTheNamespace deletes the namespace of the rig, with a workload that stays for as long as the test looks at it, as with an operator that has
// something to clean up.
func (r *rig) deletesTheNamespace() {
	r.Helper()
	r.write(events.KindSecret, "kept", map[string]string{"a": "one"})
	r.create(workload{name: "web", on: "auto", read: optionalAll(events.KindSecret, "kept")})
	finalize := func(patch string) {
		sets := r.client.AppsV1().StatefulSets(r.namespace)
		if _, err := sets.Patch(r.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	finalize(`{"metadata":{"finalizers":["example.com/keep"]}}`)
	r.passFence()
	before := r.tally()
	testkit.Must(r, r.client.CoreV1().Namespaces().Delete(r.Context(), r.namespace, metav1.DeleteOptions{}))
	r.eventually("it is decided that nothing is rolled", func(context.Context) bool {
		return len(lines(r.actuator.Output(), `"statefulset/web"`, `the namespace is being deleted`)) > 0
	})
	testkit.WantEqual(r, "rollouts", tally{}, r.tally().since(before))
	finalize(`{"metadata":{"finalizers":null}}`)
}
