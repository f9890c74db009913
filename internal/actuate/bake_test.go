package actuate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// bakeBed is a namespace of Deployments that read db, with an actuator that lets one of them go first, and a clock that a test moves.
type bakeBed struct {
	*cluster
	*loop
	names   []string
	now     time.Time
	options Options
	// outcomes are those that were reported.
	outcomes []events.Outcome
	events   uint64
}

func newBakeBed(t *testing.T, deployments ...*appsv1.Deployment) *bakeBed {
	t.Helper()
	b := &bakeBed{cluster: newStreamless(t, deployments...), now: time.Now().Truncate(time.Second)}
	for _, d := range deployments {
		b.names = append(b.names, d.Name)
	}
	b.options = b.cluster.options()
	b.options.Now, b.options.Canary = func() time.Time { return b.now }, true
	b.lead()
	return b
}

// lead makes another actuator lead, which knows what is on the workloads and the last outcome of each.
func (b *bakeBed) lead() {
	b.Helper()
	a, err := New(b.options)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range b.names {
		w, _ := a.index.Read(deployments, b.get(name))
		a.index.Listed(w, "")
	}
	b.loop = newLoop(a.surroundings, unwritten(a))
	last := map[workload.Key]events.Outcome{}
	for _, outcome := range b.outcomes {
		if outcome.Revision != "" {
			last[workload.KeyOf(outcome.Workload)] = outcome
		}
	}
	b.rollouts.peers.resume()
	for _, outcome := range last {
		b.rollouts.following.resume(b.Context(), outcome)
		b.rollouts.peers.resumeOutcome(outcome)
	}
	b.rollouts.reviewResumed(b.Context())
}

// change delivers a change of db to the workloads that read it.
func (b *bakeBed) change(version string) {
	b.Helper()
	b.changeOf("db", version)
}

// changeOf does the same for another Secret.
func (b *bakeBed) changeOf(name, version string) {
	b.Helper()
	b.events++
	e := eventOf(changeOf(func(c *events.Change) {
		c.Source.Name, c.ResourceVersion, c.ChangedAt = name, version, version
		c.Fingerprint, c.Time = fp(version), b.now
	}))
	e.delivery.Received, e.delivery.Seq, e.open = b.now, b.events, 1
	for _, w := range b.intake.index.Dependents(e.delivery.Change.Source) {
		b.intake.consider(b.Context(), e, w, nil)
	}
	b.settle()
}

func (b *bakeBed) workload(name string) *workload.Workload {
	return b.intake.index.Get(workload.Key{Kind: "deployment", Namespace: "shop", Name: name})
}

func (b *bakeBed) settle() {
	b.Helper()
	b.dispatcher.dispatch(b.Context())
	for !b.patcher.idle() {
		b.completion.finish(b.Context(), <-b.patcher.results)
		b.dispatcher.dispatch(b.Context())
	}
	for _, r := range b.outbox.waiting {
		b.outcomes = append(b.outcomes, r.outcome)
	}
	b.outbox.flushed()
}

// pass lets time pass, and acts on everything that waited for it.
func (b *bakeBed) pass(d time.Duration) {
	b.Helper()
	b.now = b.now.Add(d)
	b.rollouts.reviewOverdue(b.Context())
	b.settle()
}

// becomes changes a Deployment as its controller or a person does.
func (b *bakeBed) becomes(name string, change func(*appsv1.Deployment)) {
	b.Helper()
	b.set(name, change)
	w, _ := b.intake.index.Read(deployments, b.get(name))
	b.intake.index.Written(w)
	b.rollouts.review(b.Context(), w.Key())
	b.debounce.wake(w.Key(), b.now)
	b.settle()
}

func (b *bakeBed) ready(name string) { b.Helper(); b.becomes(name, b.complete) }

func (b *bakeBed) unready(name string) {
	b.Helper()
	b.becomes(name, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })
}

// rolled fails the test unless exactly these were rolled so far: the first one, and then the others by name.
func (b *bakeBed) rolled(when string, names ...string) {
	b.Helper()
	got := b.patches()
	slices.Sort(got[min(len(got), 1):]) // After the first one, their order is random.
	if diff := cmp.Diff(names, got); diff != "" {
		b.Fatalf("%s: rolled (-want +got):\n%s\noutcomes: %s", when, diff, strings.Join(b.told(), "\n"))
	}
}

// told lists the outcomes as text.
func (b *bakeBed) told() []string {
	var list []string
	for _, o := range b.outcomes {
		list = append(list, o.Workload.Name+" "+string(o.Verb)+" "+o.Reason)
	}
	return list
}

func (b *bakeBed) wantTold(what string) {
	b.Helper()
	if !slices.Contains(b.told(), what) {
		b.Errorf("nobody is told that %s: %s", what, strings.Join(b.told(), "\n"))
	}
}

func inWave(wave string, others ...string) map[string]string {
	on := map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/wave": wave}
	for i := 0; i < len(others); i += 2 {
		on[others[i]] = others[i+1]
	}
	return on
}

const defaultBake = 5 * time.Minute

func TestOneWorkloadBakesBeforeTheOthersRoll(t *testing.T) {
	large := deploymentOf("a-large", "db", inWave("0"))
	large.Spec.Replicas = new(int32(3))
	b := newBakeBed(t, deploymentOf("c", "db", inWave("1")), large, deploymentOf("b", "db", inWave("0")), deploymentOf("d", "db", inWave("0")))
	b.change("200")
	b.rolled("at first", "b")
	b.wantTold("d held canary-first")
	b.pass(time.Minute)
	b.ready("b")
	b.rolled("when its pods are ready", "b")
	if b.dispatcher.admission.forget(); !b.dispatcher.admission.limits.hasRoom("shop") || len(b.dispatcher.admission.limits.inProgress) > 0 {
		t.Error("it takes a slot although its pods are ready")
	}
	b.pass(defaultBake - time.Second)
	b.rolled("before it has baked", "b")
	b.pass(time.Second)
	b.wantTold("b completed rolled-out")
	b.rolled("when it has baked", "b", "a-large", "d")
	b.becomes("a-large", func(d *appsv1.Deployment) {
		b.complete(d)
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 3, 3, 3
	})
	b.ready("d")
	b.rolled("when the others of its wave are ready, which need not bake", "b", "a-large", "c", "d")
}

func TestOthersWaitForACanaryThatDoesNotStayReady(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0", workload.AnnotationBake, "2m")), deploymentOf("b", "db", inWave("0")))
	b.change("200")
	b.ready("a")
	b.pass(time.Minute)
	b.unready("a")
	b.wantTold("a failed bake-failed")
	b.wantTold("b held peer-failed")
	b.ready("a")
	b.pass(time.Minute)
	b.unready("a")
	b.pass(time.Minute)
	b.ready("a")
	b.lead()
	b.change("200")
	b.pass(2*time.Minute - time.Second)
	b.rolled("while it is unready time and again", "a")
	b.pass(time.Second)
	b.rolled("when it has stayed ready", "a", "b")
	b.wantTold("a completed rolled-out")
	b.lead()
	if b.rollouts.peers.has(b.workload("a").Key()) {
		t.Error("another leader takes it for failed")
	}
}

func TestOthersGoAfterARestartDuringOrAfterAFailedBake(t *testing.T) {
	for name, readyFor := range map[string]time.Duration{"its pods have just become ready": 0, "they had nearly baked": defaultBake - time.Second} {
		t.Run(name, func(t *testing.T) {
			b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")))
			b.change("200")
			b.ready("a")
			b.unready("a")
			b.ready("a")
			b.pass(readyFor)
			b.lead()
			b.change("200")
			b.pass(defaultBake - time.Second)
			b.rolled("while it bakes anew", "a")
			b.pass(time.Second)
			b.rolled("when it has baked, although nothing has changed at it since", "a", "b")
		})
	}
}

func TestABakeSurvivesARestart(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")), deploymentOf("c", "db", inWave("1")))
	b.change("200")
	b.lead()
	b.change("200")
	b.rolled("after a restart while it is rolled out", "a")
	b.ready("a")
	b.pass(defaultBake - time.Second)
	b.lead()
	b.change("200")
	b.rolled("after one while it bakes", "a")
	b.pass(defaultBake - time.Second)
	b.rolled("the bake has begun again", "a")
	b.pass(time.Second)
	b.rolled("when it has baked", "a", "b")
	b.lead()
	b.change("200")
	b.rolled("after one when it has baked", "a", "b")
	b.ready("b")
	b.rolled("nobody bakes again", "a", "b", "c")
}

func TestACanaryThatCannotGoIsNotWaitedFor(t *testing.T) {
	closed := inWave("0", workload.AnnotationWindow, "0 0 29 2 * for 1m")
	tests := []struct {
		name  string
		first *appsv1.Deployment
		// after is what happens to the first one after the change.
		after func(*bakeBed)
		want  []string
	}{
		{name: "it is on hold", first: deploymentOf("a", "db", inWave("-1", events.AnnotationHold, "tofu apply")), want: []string{"b"}},
		{name: "its window is closed", first: deploymentOf("a", "db", closed), want: []string{"b"}},
		{
			name: "it was rolled recently", want: []string{"b"},
			first: deploymentOf("a", "db", inWave("0", workload.AnnotationMinInterval, "1h", "keyturn.dev/rolled-at", time.Now().UTC().Format(time.RFC3339))),
		},
		{
			name: "somebody has paused it", first: deploymentOf("a", "db", inWave("0")), want: []string{"a", "b"},
			after: func(b *bakeBed) { b.becomes("a", func(d *appsv1.Deployment) { d.Spec.Paused = true }) },
		},
		{name: "it cannot be patched", first: deploymentOf("broken", "db", inWave("0")), want: []string{"c"}},
		{
			name: "it is scaled to zero", first: deploymentOf("a", "db", inWave("0")), want: []string{"a", "b"},
			after: func(b *bakeBed) {
				b.becomes("a", func(d *appsv1.Deployment) {
					d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
				})
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			others := []*appsv1.Deployment{deploymentOf("b", "db", inWave("0")), deploymentOf("c", "db", inWave("0"))}
			if test.first.Name == "broken" {
				others = []*appsv1.Deployment{deploymentOf("c", "db", inWave("0")), deploymentOf("d", "db", inWave("0"))}
			}
			b := newBakeBed(t, append(others, test.first)...)
			b.client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
				patch, _ := action.(k8stesting.PatchAction)
				return patch.GetName() == "broken", nil, errors.New("connection reset")
			})
			b.change("200")
			if test.after != nil {
				test.after(b)
			}
			b.pass(time.Second)
			b.rolled("without it", test.want...)
		})
	}
}

func TestACanaryWhosePodsAreBeingReplacedAnywayIsNotWaitedFor(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")))
	before := b.next()
	b.becomes("a", func(d *appsv1.Deployment) {
		d.Generation, d.Spec.Template.Spec.Containers[0].Image = d.Generation+1, "app:2"
	})
	b.change(before)
	b.pass(time.Second)
	b.rolled("while the other waits for its own pods", "b")
}

func TestAnotherRollOfACanaryIsBakedToo(t *testing.T) {
	both := deploymentOf("a", "db", inWave("0"))
	container := &both.Spec.Template.Spec.Containers[0]
	container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "cache"},
	}})
	b := newBakeBed(t, both, deploymentOf("b", "db", inWave("0")))
	b.change("200")
	b.ready("a")
	b.pass(time.Minute)
	b.changeOf("cache", "300")
	b.rolled("the canary is rolled for another source", "a", "a")
	b.ready("a")
	b.pass(defaultBake - time.Second)
	b.rolled("the bake has begun again", "a", "a")
	b.pass(time.Second)
	b.rolled("when it is over", "a", "a", "b")
}

func TestABakeBeginsAgainWhenSomebodyChangesThePods(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")))
	b.change("200")
	b.ready("a")
	b.pass(defaultBake - time.Minute)
	b.becomes("a", func(d *appsv1.Deployment) {
		d.Generation, d.Spec.Template.Spec.Containers[0].Image = d.Generation+1, "app:2"
		d.Status.ObservedGeneration, d.Status.UpdatedReplicas = d.Generation, 0
	})
	b.pass(2 * time.Minute)
	b.ready("a")
	b.pass(defaultBake - time.Second)
	b.rolled("before the new pods have baked", "a")
	b.pass(time.Second)
	b.rolled("when they have", "a", "b")
}

func TestTheOnlyReaderOfASourceNeedNotBake(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")))
	b.change("200")
	b.ready("a")
	b.wantTold("a completed rolled-out")
}

func TestABakeGoesOnWhileACanaryIsScaled(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")))
	b.change("200")
	b.ready("a")
	b.pass(defaultBake - time.Minute)
	b.becomes("a", func(d *appsv1.Deployment) {
		d.Generation++
		d.Spec.Replicas, d.Status.ObservedGeneration, d.Status.Replicas, d.Status.UpdatedReplicas = new(int32(2)), d.Generation, 2, 2
	})
	b.pass(time.Minute)
	b.rolled("while a further pod is not ready", "a")
	b.becomes("a", func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 })
	b.rolled("when it is", "a", "b")
}

func TestANewChangeIsBakedInstead(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")))
	b.change("200")
	b.ready("a")
	b.pass(defaultBake - time.Second)
	b.change("300")
	b.rolled("the canary gets it first", "a", "a")
	b.ready("a")
	b.pass(defaultBake - time.Second)
	b.rolled("and bakes it", "a", "a")
	b.pass(time.Second)
	b.rolled("then the other", "a", "a", "b")
	b.prune()
	if c := b.rollouts.canaries; len(c.chosen)+len(c.passed) > 0 {
		t.Errorf("left behind: %v, %v", c.chosen, c.passed)
	}
}

func TestWithoutPodsAWorkloadTriesNothing(t *testing.T) {
	none := deploymentOf("a", "db", inWave("0"))
	none.Spec.Replicas = new(int32(0))
	b := newBakeBed(t, none, deploymentOf("b", "db", inWave("0")))
	b.change("200")
	b.rolled("at first", "b")
	if got := b.debounce.byKey[b.workload("a").Key()]; got == nil || got.held != plan.CanaryFirst {
		t.Errorf("the one without pods: %+v, want that it waits", got)
	}
}

func TestWhatWentFirstIsForgottenWhileAWorkloadIsHeld(t *testing.T) {
	b := newBakeBed(t, deploymentOf("a", "db", inWave("0")), deploymentOf("b", "db", inWave("0")),
		deploymentOf("held", "db", inWave("0", events.AnnotationHold, "until spring")))
	for _, version := range []string{"200", "300", "400"} {
		b.change(version)
		b.ready("a")
		b.pass(defaultBake)
		b.ready("b")
		b.prune()
		if passed := b.rollouts.canaries.passed; len(passed) != 1 {
			t.Errorf("after %s it is known of %d changes that one went first, want of the last: %v", version, len(passed), passed)
		}
	}
	b.rolled("while one is held", "a", "a", "a", "b", "b", "b")
	b.becomes("held", func(d *appsv1.Deployment) { delete(d.Annotations, events.AnnotationHold) })
	b.rolled("when it is not", "a", "a", "a", "b", "b", "b", "held")
}
