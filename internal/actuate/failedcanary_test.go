package actuate

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// failures are the ways in which the rollout of a canary ends before its pods are ready, and the outcome of each.
var failures = map[string]struct {
	fail func(b *bakeBed, name string)
	told string
}{
	"its controller has given up": {
		fail: func(b *bakeBed, name string) {
			b.becomes(name, func(d *appsv1.Deployment) {
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1}
				d.Status.Conditions = []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
				}
			})
		},
		told: "a failed deadline-exceeded",
	},
	"it has timed out": {
		fail: func(b *bakeBed, _ string) { b.pass(b.options.RolloutTimeout) },
		told: "a failed timed-out",
	},
}

func TestACanaryWhoseRolloutFailedBakesWhenItIsReadyAfterAll(t *testing.T) {
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")))
			b.change("200")
			failure.fail(b, "a")
			b.wantTold(failure.told)
			b.ready("a")
			b.rolled("when its pods are ready", "a")
			b.pass(time.Minute)
			b.unready("a")
			b.pass(defaultBake)
			b.rolled("they did not stay so", "a")
			b.ready("a")
			b.pass(defaultBake - time.Second)
			b.rolled("before they have", "a")
			b.pass(time.Second)
			b.rolled("when they have", "a", "b")
			b.wantTold("a completed rolled-out")
		})
	}
}

func TestARestartSparesNoFailedCanaryItsBake(t *testing.T) {
	for name, failure := range failures {
		for when, readyBefore := range map[string]bool{"before its pods are ready": false, "after that": true} {
			t.Run(name+", and the actuator restarts "+when, func(t *testing.T) {
				b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")), deploymentOf("c", "db", inWave("1")))
				b.change("200")
				failure.fail(b, "a")
				if readyBefore {
					b.ready("a")
				}
				b.lead()
				b.change("200")
				if !readyBefore {
					b.ready("a")
				}
				b.pass(defaultBake - time.Second)
				b.rolled("before it has baked", "a")
				b.pass(time.Second)
				b.rolled("when it has", "a", "b")
				b.lead()
				b.change("200")
				b.ready("b")
				b.rolled("it does not bake again for the next leader", "a", "b", "c")
			})
		}
	}
}

func TestAFailedWorkloadForWhichNobodyWaitsNeedNotBake(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")))
	b.change("200")
	failures["it has timed out"].fail(b, "a")
	b.ready("a")
	if b.rollouts.peers.has(b.workload("a").Key()) || slices.Contains(b.told(), "a completed rolled-out") {
		t.Errorf("it bakes: %v", b.told())
	}
	b.lead()
	if b.rollouts.peers.has(b.workload("a").Key()) {
		t.Error("the next leader has it bake")
	}
}
