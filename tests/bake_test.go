package tests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// becomes makes the only pod of a Deployment ready, or not.
func (r *rig) becomes(name string, ready corev1.ConditionStatus) {
	r.Helper()
	pods, err := r.client.CoreV1().Pods(r.namespace).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	at := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool {
		return strings.HasPrefix(pod.Name, name+"-") && pod.DeletionTimestamp == nil
	})
	if at < 0 {
		r.Fatalf("%s has no pod", name)
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, ready)
	if _, err := r.client.CoreV1().Pods(r.namespace).Patch(
		r.Context(), pods.Items[at].Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status",
	); err != nil {
		r.Fatal(err)
	}
}

func TestTheOthersRollWhenTheFirstHasStayedReadyAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--canary"}})
	r.secret("shared", map[string]string{"password": "one"})
	// Within it the actuator starts again, also on a busy machine.
	r.deploy(r.reading("first", "shared", 1, map[string]string{"keyturn.dev/bake": "45s"}))
	r.deploy(r.reading("second", "shared", 2, nil))
	r.start()
	before := r.tally()
	want := func(what string, first, second int64) {
		t.Helper()
		if got := r.tally().since(before); got["deployment/first"] != first || got["deployment/second"] != second {
			t.Errorf("%s: rollouts: got %v, want %d of the first and %d of the second", what, got, first, second)
		}
	}
	r.secret("shared", map[string]string{"password": "two"})
	r.isHeld("second", "canary-first", "deployment/first")
	r.eventually("the pods of the first are ready", func(context.Context) bool {
		first := r.deployment("first")
		return programs.Revision(&first.Spec.Template) != "" && first.Status.ObservedGeneration == first.Generation &&
			first.Status.Replicas == 1 && first.Status.UpdatedReplicas == 1 && first.Status.AvailableReplicas == 1
	})

	r.stop(r.actuator)
	r.startActuator()
	r.eventually("the rollout of the first is followed", func(context.Context) bool {
		return r.series(r.actuator, "keyturn_rollouts_active", `kind="deployment"`) == "1"
	})
	want("after a restart", 1, 0)
	explained := r.explain("deployment/second")
	for _, said := range []string{
		": deployment/first (canary-first)\ndeployment/first: started at TIME (content-changed)\n", "\nPending: secret/shared.\n",
		"hold (canary-first), then roll (content-changed): content that the pods read has changed",
	} {
		if !strings.Contains(explained, said) {
			t.Errorf("explain does not say %q:\n%s", said, explained)
		}
	}

	r.becomes("first", corev1.ConditionFalse)
	if failed := r.outcomeOf("first", events.VerbFailed); failed.Reason != "bake-failed" {
		t.Errorf("the first has failed for %s: %s", failed.Reason, failed.Message)
	}
	r.isHeld("second", "peer-failed", "deployment/first")
	r.becomes("first", corev1.ConditionTrue)
	r.outcomeOf("second", events.VerbCompleted)
	want("when it has stayed ready", 1, 1)
	r.quiet()
}
