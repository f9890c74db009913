package tests

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// deployStateful creates a StatefulSet that reads a Secret, and waits until its pods are ready.
func (r *rig) deployStateful(name, secret string, replicas int32, annotations map[string]string) {
	r.Helper()
	reading := r.reading(name, secret, replicas, annotations)
	set := &appsv1.StatefulSet{ObjectMeta: reading.ObjectMeta, Spec: appsv1.StatefulSetSpec{
		Replicas: reading.Spec.Replicas, Selector: reading.Spec.Selector, Template: reading.Spec.Template,
	}}
	if _, err := r.client.AppsV1().StatefulSets(r.namespace).Create(r.Context(), set, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.eventually("the pods of "+name+" are ready", func(ctx context.Context) bool { return r.stateful(ctx, name).Status.ReadyReplicas == replicas })
}

func (r *rig) stateful(ctx context.Context, name string) *appsv1.StatefulSet {
	r.Helper()
	set, err := r.client.AppsV1().StatefulSets(r.namespace).Get(ctx, name, metav1.GetOptions{})
	testkit.Must(r, err)
	return set
}

// patchStateful makes a merge patch of a StatefulSet.
func (r *rig) patchStateful(name, patch string) {
	r.Helper()
	sets := r.client.AppsV1().StatefulSets(r.namespace)
	if _, err := sets.Patch(r.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

func TestAStatefulSetWhosePodsDoNotStartHoldsItsPeersUntilItIsRepaired(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--rollout-timeout", "30s"}})
	r.secret("shared", map[string]string{"password": "one"})
	r.deployStateful("broken", "shared", 2, map[string]string{"keyturn.dev/wave": "-1"})
	r.deployStateful("nodes", "shared", 2, nil)
	// From now on each pod must have been ready for a second before the next is replaced.
	r.patchStateful("nodes", `{"spec":{"minReadySeconds":1}}`)
	// The next pod stays pending, and the others are not replaced: no node takes it.
	r.patchStateful("broken", `{"spec":{"template":{"spec":{"nodeSelector":{"example.com/nowhere":"true"}}}}}`)
	r.start()
	r.secret("shared", map[string]string{"password": "two"})

	if outcome := r.outcomeOf("broken", events.VerbFailed); outcome.Reason != "timed-out" {
		t.Errorf("reason of the failure: got %s, want timed-out", outcome.Reason)
	}
	r.isHeld("nodes", "peer-failed", "statefulset/broken")
	if got := r.count("nodes", events.VerbStarted); got != 0 {
		t.Error("nodes was rolled although the first has failed")
	}

	r.patchStateful("broken", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	// The controller makes a pod that is deleted anew, of the template that it knows by then.
	r.eventually("the controller knows the repaired template", func(ctx context.Context) bool {
		set := r.stateful(ctx, "broken")
		return set.Status.ObservedGeneration == set.Generation
	})
	// The controller of StatefulSets waits for a pod that never started until someone deletes it.
	testkit.Must(t, r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "broken-1", metav1.DeleteOptions{}))
	completed := r.outcomeOf("nodes", events.VerbCompleted)
	set := r.stateful(t.Context(), "nodes")
	if programs.Revision(&set.Spec.Template) != completed.Revision || set.Status.UpdatedReplicas != 2 || set.Status.AvailableReplicas != 2 {
		t.Errorf("when it was completed, of 2 pods %d are new, and %d are available", set.Status.UpdatedReplicas, set.Status.AvailableReplicas)
	}
	if got := r.count("nodes", events.VerbFailed); got != 0 {
		t.Errorf("the rollout has failed %d times", got)
	}
}
