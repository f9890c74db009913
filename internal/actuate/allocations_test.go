package actuate

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
)

// allocationsOfAChange is how many allocations a change of a Secret that one Deployment reads costs the actuator: from the delivery of the event
// until the second of its two outcomes is encoded. Those of the stream, the API server and their clients do not count. The race detector adds a
// few, which are included.
const allocationsOfAChange = 428

func TestAChangeCostsTheActuatorNoMoreAllocationsThanBefore(t *testing.T) {
	const times = 50
	r := newRotation(t, times+1, answersOf(t, times+1))
	if got := testing.AllocsPerRun(times, r.turn); got > allocationsOfAChange*1.1 {
		t.Errorf("a change costs %.0f allocations, a tenth more than %d", got, allocationsOfAChange)
	}
}

// BenchmarkRotation measures a hundred changes, each with its rollout.
func BenchmarkRotation(b *testing.B) {
	const turns = 100
	answers := answersOf(b, turns)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r := newRotation(b, turns, answers)
		b.StartTimer()
		for range turns {
			r.turn()
		}
	}
}

// rotation is a Secret that changes again and again, and a loop that rolls the Deployment that reads it. Each rollout ends before the next change.
type rotation struct {
	*loop
	testing.TB
	turns int
	// deliveries are those of the changes, one for each turn.
	deliveries []*events.Delivery
	// answers are the answers to the patches, one for each turn. A missing one is made.
	answers    []*appsv1.Deployment
	deployment *appsv1.Deployment
}

// answersOf returns the answers to the patches of some turns, so that making them is not measured.
func answersOf(tb testing.TB, turns int) []*appsv1.Deployment {
	tb.Helper()
	r := newRotation(tb, turns, nil)
	for range turns {
		r.turn()
	}
	return r.answers
}

func newRotation(tb testing.TB, turns int, answers []*appsv1.Deployment) *rotation {
	tb.Helper()
	r := &rotation{TB: tb, deployment: deploymentOf("web", "db", rollOn("auto"))}
	r.deployment.ResourceVersion = "50"
	for _, d := range answers {
		r.answers = append(r.answers, d.DeepCopy())
	}
	for i := range turns {
		r.deliveries = append(r.deliveries, &events.Delivery{
			Change: changeOf(func(c *events.Change) {
				c.Time, c.ResourceVersion = written, r.version(i, 1)
				c.Previous, c.Fingerprint, c.ChangedAt = printOf(i), printOf(i+1), c.ResourceVersion
				c.Keys["password"] = events.Key{Fingerprint: printOf(i + 1), ChangedAt: c.ResourceVersion}
			}),
			Seq: uint64(i + 1), Deliveries: 1, Received: written,
		})
	}
	options := testOptions()
	options.Client, options.Settle, options.MaxRollsPerHour = &patchedAPI{patch: r.patch}, 0, 0
	a, err := New(options)
	if err != nil {
		tb.Fatal(err)
	}
	r.loop = newLoop(a.surroundings, unwritten(a))
	r.observe(r.deployment, 0)
	return r
}

// printOf returns the fingerprint of a content.
func printOf(i int) string { return fmt.Sprintf("k0a1b2c3d:%032x", i) }

// version returns a resourceVersion within a turn.
func (r *rotation) version(turn, step int) string { return strconv.Itoa(1000*(turn+1) + step) }

// patch answers a patch as an API server does.
func (r *rotation) patch(action k8stesting.PatchActionImpl) (*appsv1.Deployment, error) {
	if len(r.answers) > r.turns {
		r.deployment = r.answers[r.turns]
		return r.deployment, nil
	}
	after, err := patched(r.deployment, action)
	if err != nil {
		return nil, err
	}
	d, ok := after.(*appsv1.Deployment)
	if !ok {
		return nil, fmt.Errorf("it is a %T", after)
	}
	d.Generation++
	d.ResourceVersion = r.version(r.turns, 2)
	r.deployment, r.answers = d, append(r.answers, d.DeepCopy())
	return d, nil
}

// turn takes the next change to the end of its rollout.
func (r *rotation) turn() {
	r.intake.take(r.Context(), r.deliveries[r.turns])
	r.dispatcher.dispatch(r.Context())
	r.completion.finish(r.Context(), <-r.patcher.results)
	r.publish(events.VerbStarted)

	// Its own patch comes back, the controller observes it, and the pods are ready.
	r.observe(r.deployment, 0)
	r.deployment.Status.UpdatedReplicas = 0
	r.observe(r.deployment, 3)
	r.deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: r.deployment.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
	}
	r.observe(r.deployment, 4)
	r.publish(events.VerbCompleted)
	if len(r.inFlight.open) != 0 {
		r.Fatal("an event is not acked")
	}
	r.turns++
}

// observe shows the loop a state of the Deployment at a step of the turn. Step 0 keeps the resourceVersion.
func (r *rotation) observe(d *appsv1.Deployment, step int) {
	if step > 0 {
		d.ResourceVersion = r.version(r.turns, step)
	}
	w, ok := r.dispatcher.index.Read(deployments, d)
	if !ok {
		r.Fatal("it is no workload")
	}
	r.dispatcher.index.Written(w)
	r.review(r.Context())
}

// publish encodes the outcome that waits, which must have the verb.
func (r *rotation) publish(verb events.Verb) {
	waiting := r.outbox.waiting
	r.outbox.flushed()
	if len(waiting) != 1 || waiting[0].outcome.Verb != verb {
		r.Fatalf("the outcomes are %+v, want one that is %s", waiting, verb)
	}
	outcome := waiting[0].outcome
	e, err := outcome.Event()
	if err == nil {
		_, err = events.ToMsg(e, events.OutcomeSubject(outcome.Cluster, outcome.Workload))
	}
	if err != nil {
		r.Fatal(err)
	}
	r.confirm(r.Context(), waiting)
}

// patchedAPI is an API server that only takes patches of Deployments.
type patchedAPI struct {
	kubernetes.Interface
	typedappsv1.AppsV1Interface
	typedappsv1.DeploymentInterface
	patch func(k8stesting.PatchActionImpl) (*appsv1.Deployment, error)
}

func (a *patchedAPI) AppsV1() typedappsv1.AppsV1Interface { return a }

func (a *patchedAPI) Deployments(string) typedappsv1.DeploymentInterface { return a }

// Patch answers a patch.
func (a *patchedAPI) Patch(
	_ context.Context, name string, kind types.PatchType, body []byte, _ metav1.PatchOptions, _ ...string,
) (*appsv1.Deployment, error) {
	return a.patch(k8stesting.NewPatchAction(appsv1.SchemeGroupVersion.WithResource("deployments"), "shop", name, kind, body))
}
