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

// becomes makes the only pod of a Deployment ready, or not, and waits until the actuator knows that: it sees changes of Deployments in order.
func (r *rig) becomes(name string, ready corev1.ConditionStatus, available int32) {
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
	r.eventually("the controller has counted the pods of "+name, func(context.Context) bool {
		return r.deployment(name).Status.AvailableReplicas == available
	})
	r.passFence()
}

func TestTheOthersRollWhenTheFirstHasStayedReadyAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	const bake = time.Hour
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	r.secret("shared", map[string]string{"password": "one"})
	r.deploy(r.reading("first", "shared", 1, map[string]string{"keyturn.dev/bake": bake.String()}))
	r.deploy(r.reading("second", "shared", 2, nil))
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
	r.eventually("the pods of the first are ready", func(context.Context) bool {
		d := r.deployment("first")
		return programs.Revision(&d.Spec.Template) != "" && complete(d)
	})
	stop()
	run()
	r.passFence()
	want("after a restart", 1, 0)

	r.becomes("first", corev1.ConditionFalse, 0)
	if failed := r.outcomeOf("first", events.VerbFailed); failed.Reason != "bake-failed" {
		t.Errorf("the first has failed for %s: %s", failed.Reason, failed.Message)
	}
	r.isHeld("second", "peer-failed", "deployment/first")
	clock.pass(bake)
	r.becomes("first", corev1.ConditionTrue, 1)
	want("before it has stayed ready", 1, 0)
	clock.pass(bake)
	r.outcomeOf("second", events.VerbCompleted)
	want("when it has stayed ready", 1, 1)
}
