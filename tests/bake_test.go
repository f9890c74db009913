package tests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/actuate"
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

// knowsDeployments waits until the actuator has seen all Deployments as they are. It sees their changes in order, and reports the end of a rollout
// once it has seen that: so it has seen all that was before a rollout of the fence.
func (r *rig) knowsDeployments() {
	r.Helper()
	r.reachFence()
	revision := programs.Revision(&r.deployment("fence-secret").Spec.Template)
	r.eventually("the rollout of the fence is told to have ended", func(context.Context) bool {
		return slices.ContainsFunc(r.told(events.VerbCompleted), func(o events.Outcome) bool { return o.Revision == revision })
	})
}

// hasRolled reports whether a Deployment of one pod was rolled, and its pod is ready.
func (r *rig) hasRolled(name string) bool {
	r.Helper()
	d := r.deployment(name)
	return programs.Revision(&d.Spec.Template) != "" && d.Status.ObservedGeneration == d.Generation &&
		d.Status.Replicas == 1 && d.Status.UpdatedReplicas == 1 && d.Status.AvailableReplicas == 1
}

// placePair makes two Deployments of a Secret of their own. The pod of the first must stay ready for a time before the second is rolled.
func (r *rig) placePair(name string, bake time.Duration) {
	r.Helper()
	r.secret(name, map[string]string{"password": "one"})
	r.deploy(r.reading(name+"-1", name, 1, map[string]string{"keyturn.dev/bake": bake.String()}))
	r.deploy(r.reading(name+"-2", name, 1, nil))
}

// rollPair rolls the first of a pair, and waits until the actuator knows that its pod is ready and all else that is so by then. What waits for a time
// is reviewed all at once, now and then, and no fence waits for that. But once the time is over and the second has rolled, all has been reviewed.
func (r *rig) rollPair(name string) {
	r.Helper()
	r.secret(name, map[string]string{"password": "two"})
	r.isHeld(name+"-2", "canary-first", "deployment/"+name+"-1")
	r.eventually("the pod of "+name+"-1 is ready", func(context.Context) bool { return r.hasRolled(name + "-1") })
	r.knowsDeployments()
}

func TestTheOthersRollWhenTheFirstHasStayedReadyAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	const bake = time.Hour
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	r.secret("shared", map[string]string{"password": "one"})
	r.deploy(r.reading("first", "shared", 1, map[string]string{"keyturn.dev/bake": bake.String()}))
	r.deploy(r.reading("second", "shared", 2, nil))
	r.placePair("steady", bake)
	r.placePair("sooner", bake/2)
	r.placeFence()
	clock := &shiftedClock{}
	run := func() func() { return r.runAt(clock, func(o *actuate.Options) { o.Canary = true }) }
	stop := run()
	r.startWatcher()
	r.awaitRecords()
	before := r.tally()
	want := func(what string, first, second int64) {
		t.Helper()
		if got := r.tally().since(before); got["deployment/first"] != first || got["deployment/second"] != second {
			t.Errorf("%s: rollouts: got %v, want %d of the first and %d of the second", what, got, first, second)
		}
	}
	r.secret("shared", map[string]string{"password": "two"})
	r.isHeld("second", "canary-first", "deployment/first")
	r.eventually("the pods of the first are ready", func(context.Context) bool { return r.hasRolled("first") })

	stop()
	run()
	r.reachFence()
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
	r.rollPair("steady")
	clock.pass(bake)
	r.outcomeOf("steady-2", events.VerbCompleted)
	want("when its pod is not ready", 1, 0)

	r.becomes("first", corev1.ConditionTrue)
	r.eventually("the pods of the first are ready again", func(context.Context) bool {
		return r.deployment("first").Status.AvailableReplicas == 1
	})
	r.rollPair("sooner")
	clock.pass(bake * 3 / 4)
	r.outcomeOf("sooner-2", events.VerbCompleted)
	want("when it has not stayed ready for long enough", 1, 0)
	clock.pass(bake / 4)
	r.outcomeOf("second", events.VerbCompleted)
	want("when it has stayed ready", 1, 1)
	r.quiet()
}
