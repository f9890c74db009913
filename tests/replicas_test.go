package tests

import (
	"context"
	"os"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// replica starts one of the actuators with the NATS beside it, and does not wait until they are ready.
func (r *rig) replica(i int) *programs.Pod {
	r.Helper()
	pod, err := r.programs.StartReplica(i)
	testkit.Must(r, err)
	r.own(pod.NATS)
	r.own(pod.Actuator) // Ends before its NATS, as in a pod.
	return pod
}

// leading returns which of the pods has the Lease, and has said so, or -1 if none has: an earlier test may have left the Lease to the same name.
func (r *rig) leading(ctx context.Context, pods []*programs.Pod) int {
	lease, err := r.client.CoordinationV1().Leases(programs.SystemNamespace).Get(ctx, "keyturn-actuator", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return -1
	}
	return slices.IndexFunc(pods, func(pod *programs.Pod) bool { return pod.Name == *lease.Spec.HolderIdentity && pod.Actuator.Leads() })
}

func TestNoChangeIsLostWhileEachActuatorLosesItsVolumeInTurn(t *testing.T) {
	t.Parallel()
	holdElections(t)
	const size = 36
	r := newRig(t, programs.Options{Actuators: 3, ActuatorArgs: []string{"--settle", "50ms", "--leader-elect", "--max-rolls-per-hour", "0"}})
	r.fleet(size, ownSecret)
	pods := []*programs.Pod{r.replica(0), r.replica(1), r.replica(2)}
	for _, pod := range pods {
		pod.AwaitReady(r.T, patience)
	}
	r.startWatcher()
	r.startWatcher()
	r.awaitRecords()
	for i, pod := range pods {
		before := r.generations()
		// A third changes before the loss, a third while the pod is away, and a third while it comes back.
		change := func(third int) {
			for j := third * size / 3; j < (third+1)*size/3; j++ {
				r.secret(ownSecret(j), map[string]string{"password": "after the loss of " + r.programs.StoreDir(i)})
			}
		}
		change(0)
		pod.Kill()
		testkit.Must(t, os.RemoveAll(r.programs.StoreDir(i)))
		change(1)
		pods[i] = r.replica(i)
		change(2)
		pods[i].AwaitReady(r.T, patience)
		r.eachRolledOnce(before)
	}
}

// A leader whose server does nothing has neither the events nor a way to publish, while the other two servers have both.
func TestAnotherActuatorLeadsWhenTheNATSBesideTheLeaderHangs(t *testing.T) {
	t.Parallel()
	holdElections(t)
	const size = 12
	r := newRig(t, programs.Options{Actuators: 3, ActuatorArgs: []string{"--settle", "50ms", "--leader-elect"}})
	r.fleet(size, ownSecret)
	pods := []*programs.Pod{r.replica(0), r.replica(1), r.replica(2)}
	for _, pod := range pods {
		pod.AwaitReady(r.T, patience)
	}
	r.startWatcher()
	r.awaitRecords()
	leader := -1
	r.eventually("an actuator leads", func(ctx context.Context) bool {
		leader = r.leading(ctx, pods)
		return leader >= 0
	})
	before := r.generations()
	testkit.Must(t, pods[leader].NATS.Suspend())
	r.rotate(size, ownSecret)
	r.eventually("another actuator leads", func(ctx context.Context) bool {
		now := r.leading(ctx, pods)
		return now >= 0 && now != leader
	}, pods[leader].Actuator.Output)
	r.awaitRolled(before)
	testkit.Must(t, pods[leader].NATS.Resume())
	pods[leader].AwaitReady(r.T, patience)
	r.eachRolledOnce(before)
	for _, pod := range pods {
		if pod.Actuator.Ended() {
			t.Errorf("the actuator of %s has ended, want that it waits for its server", pod.Name)
		}
	}
}
