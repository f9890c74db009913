package actuate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// bed is a namespace of Deployments that read Secrets, with an actuator that lets one of them go first, and a clock that a test moves.
type bed struct {
	*testing.T
	*loop
	client  *fake.Clientset
	options Options
	names   []string
	now     time.Time
	// last are the last outcomes of rollouts.
	last   map[workload.Key]events.Outcome
	events uint64

	mu      sync.Mutex
	version int
	// failing are the Deployments whose patches fail.
	failing map[string]bool
}

func newBed(t *testing.T, deployments ...*appsv1.Deployment) *bed {
	t.Helper()
	b := &bed{
		T: t, client: fake.NewClientset(), now: time.Now().Truncate(time.Second), last: make(map[workload.Key]events.Outcome), version: 10,
		failing: make(map[string]bool),
	}
	b.client.PrependReactor("patch", "deployments", b.patch)
	for _, d := range deployments {
		d.ResourceVersion = b.next()
		complete(d)
		if _, err := b.client.AppsV1().Deployments(d.Namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.names = append(b.names, d.Name)
	}
	b.options = testOptions()
	b.options.Client, b.options.Settle, b.options.Canary, b.options.Now = b.client, 0, true, func() time.Time { return b.now }
	b.lead()
	return b
}

func (b *bed) next() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	return strconv.Itoa(b.version)
}

// patch answers a patch as an API server does.
func (b *bed) patch(action k8stesting.Action) (bool, runtime.Object, error) {
	patch, ok := action.(k8stesting.PatchActionImpl)
	if !ok || b.fails(patch.GetName()) {
		return true, nil, errors.New("connection reset")
	}
	found, err := b.client.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	after, err := patched(found, action)
	if err != nil {
		return true, nil, err
	}
	d, ok := after.(*appsv1.Deployment)
	if !ok {
		return true, nil, fmt.Errorf("it is a %T", after)
	}
	d.ResourceVersion = b.next()
	if setIn(patch.GetPatch(), annotationRevision) != "" {
		d.Generation++
	}
	return true, d, b.client.Tracker().Update(patch.GetResource(), d, patch.GetNamespace(), metav1.UpdateOptions{FieldManager: patch.PatchOptions.FieldManager})
}

func (b *bed) fails(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing[name]
}

// fail makes the patches of a Deployment fail, or no longer.
func (b *bed) fail(name string, fails bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing[name] = fails
}

// complete makes all pods be of the current template, and ready.
func complete(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
}

func (b *bed) get(name string) *appsv1.Deployment {
	b.Helper()
	d, err := b.client.AppsV1().Deployments("shop").Get(b.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func (b *bed) workload(name string) *workload.Workload {
	return b.intake.index.Get(workload.Key{Kind: "deployment", Namespace: "shop", Name: name})
}

// lead makes another actuator lead, which knows what is on the workloads and the last outcome of each.
func (b *bed) lead() {
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
	b.rollouts.peers.resume()
	for _, outcome := range b.last {
		b.rollouts.following.resume(b.Context(), outcome)
		b.rollouts.peers.resumeOutcome(outcome)
	}
	b.rollouts.reviewResumed(b.Context())
}

// change delivers a change of a Secret to the workloads that read it.
func (b *bed) change(name, version string) {
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

func (b *bed) settle() {
	b.Helper()
	b.dispatcher.dispatch(b.Context())
	for !b.patcher.idle() {
		b.completion.finish(b.Context(), <-b.patcher.results)
		b.dispatcher.dispatch(b.Context())
	}
	for _, r := range b.outbox.waiting {
		if r.outcome.Revision != "" {
			b.last[workload.KeyOf(r.outcome.Workload)] = r.outcome
		}
	}
	b.outbox.flushed()
}

// pass lets time pass, and acts on everything that waited for it.
func (b *bed) pass(d time.Duration) {
	b.Helper()
	b.now = b.now.Add(d)
	b.rollouts.reviewOverdue(b.Context())
	b.settle()
}

// becomes changes a Deployment as its controller or a person does.
func (b *bed) becomes(name string, change func(*appsv1.Deployment)) {
	b.Helper()
	d := b.get(name)
	change(d)
	d.ResourceVersion = b.next()
	if _, err := b.client.AppsV1().Deployments(d.Namespace).Update(b.Context(), d, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
	w, _ := b.intake.index.Read(deployments, b.get(name))
	b.intake.index.Written(w)
	b.rollouts.review(b.Context(), w.Key())
	b.debounce.wake(w.Key(), b.now)
	b.settle()
}

// TestEverybodyRollsInTheEnd rolls workloads in waves that read one of two sources, or both, with patches that fail, holds, pauses, pods that do not
// stay ready, changes and restarts. When all of that is over, every workload gets the last content.
func TestEverybodyRollsInTheEnd(t *testing.T) {
	seeds := uint64(15)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 31))
			var all []*appsv1.Deployment
			for i := range 5 {
				source := [2]string{"db", "cache"}[random.IntN(2)]
				d := deploymentOf(fmt.Sprintf("app-%d", i), source, map[string]string{
					workload.AnnotationRollOn: "auto", workload.AnnotationBake: "30s", "keyturn.dev/wave": strconv.Itoa(random.IntN(2)),
				})
				if random.IntN(2) == 0 {
					other := corev1.LocalObjectReference{Name: "cache"}
					d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom,
						corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: other}})
				}
				all = append(all, d)
			}
			b := newBed(t, all...)
			last := map[string]string{}
			version := 200
			rotate := func(source string) {
				version++
				last[source] = strconv.Itoa(version)
				b.change(source, last[source])
			}
			rotate("db")
			rotate("cache")
			for range 40 {
				name := b.names[random.IntN(len(b.names))]
				switch random.IntN(9) {
				case 0:
					rotate([2]string{"db", "cache"}[random.IntN(2)])
				case 1:
					b.fail(name, !b.fails(name))
				case 2:
					b.becomes(name, func(d *appsv1.Deployment) {
						d.Annotations[events.AnnotationHold] = [2]string{"", "wait"}[random.IntN(2)]
					})
				case 3:
					b.becomes(name, func(d *appsv1.Deployment) { d.Spec.Paused = !d.Spec.Paused })
				case 4:
					b.becomes(name, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })
				case 5, 6:
					b.becomes(name, complete)
				case 7:
					b.pass(time.Duration(random.IntN(60)) * time.Second)
				case 8:
					b.lead()
					for source, version := range last {
						b.change(source, version)
					}
				}
			}
			for _, name := range b.names {
				b.fail(name, false)
				b.becomes(name, func(d *appsv1.Deployment) { delete(d.Annotations, events.AnnotationHold); d.Spec.Paused = false })
			}
			for range 30 {
				for _, name := range b.names {
					if d := b.get(name); d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != 1 {
						b.becomes(name, complete)
					}
				}
				b.pass(31 * time.Second)
			}
			for _, name := range b.names {
				for source, version := range last {
					if w := b.workload(name); w.Reference(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: source}) != nil &&
						w.Rolled["secret/"+source].Version != version {
						t.Errorf("%s has %v, want %s of %s; it waits: %+v", name, w.Rolled, version, source, b.debounce.byKey[w.Key()])
					}
				}
			}
		})
	}
}
