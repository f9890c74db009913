package actuate

import (
	"context"
	"log/slog"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

var (
	db      = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	written = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
)

// fp returns a fingerprint that differs with the letter.
func fp(letter string) string {
	const digits = "0000000000000000000000000000000"
	return "k0a1b2c3d:" + digits + letter
}

// changeOf returns a change of the Secret db at resourceVersion 100: its key password, which has changed before, changed, and its
// key user did not.
func changeOf(mutate func(*events.Change)) events.Change {
	change := events.Change{
		Cluster: "demo", Source: db, Verb: events.VerbChanged, UID: "uid", ResourceVersion: "100", ChangedAt: "100",
		Fingerprint: fp("b"), Previous: fp("a"), Changed: []string{"password"}, WrittenAt: written,
		Keys: map[string]events.Key{
			"password": {Fingerprint: fp("2"), ChangedAt: "100"},
			"user":     {Fingerprint: fp("3")},
		},
	}
	if mutate != nil {
		mutate(&change)
	}
	return change
}

// workloadOf returns a Deployment that rolls on all that it references, and references db by one key or as a whole.
func workloadOf(t *testing.T, annotation string, ref workload.Reference, mutate func(*workload.Workload)) *workload.Workload {
	t.Helper()
	w, ok := workload.Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", CreationTimestamp: metav1.NewTime(written.Add(-time.Hour)),
		Annotations: map[string]string{workload.AnnotationRollOn: annotation},
	}}, workload.Reading{Stores: everyStore})
	if !ok || len(w.Problems) > 0 {
		t.Fatal(w.Problems)
	}
	w.Progress = workload.Progress{}
	if ref.Kind != "" {
		w.Refs = []workload.Reference{ref}
	}
	if mutate != nil {
		mutate(w)
	}
	return w
}

// deployments is the kind that most tests use.
var deployments, _ = workload.BuiltIn().Named("deployment")

// everyStore lets every namespace name every secret in a store.
var everyStore = workload.StoreAccess{Grants: []workload.StoreGrant{{Namespaces: []string{"*"}, Store: "*", Paths: []string{"*"}}}}

// The annotations that tests read and write.
const (
	annotationRolled   = "keyturn.dev/rolled"
	annotationRevision = "keyturn.dev/revision"
)

func rollOn(text string) map[string]string { return map[string]string{workload.AnnotationRollOn: text} }

// recordOf returns the record in an annotation, as a workload that has it is read.
func recordOf(annotation string) map[string]workload.RolledFor {
	w, _ := workload.Read(deployments, webDeployment("1", map[string]string{annotationRolled: annotation}), workload.Reading{})
	return w.Rolled
}

// testOptions returns the options of an actuator that talks to nobody. The time is that of the tests' events.
func testOptions() Options {
	options := DefaultOptions()
	options.Cluster, options.Client = "demo", fake.NewClientset()
	options.Logger = slog.New(slog.DiscardHandler)
	options.Tracer, options.Meter = tracenoop.NewTracerProvider().Tracer(""), metricnoop.NewMeterProvider().Meter("")
	options.Now = func() time.Time { return written }
	return options
}

// loopOf returns a loop that knows the workloads. It does not run: a test calls what the loop would.
func loopOf(t *testing.T, options Options, workloads ...*workload.Workload) *loop {
	t.Helper()
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		a.index.Listed(w, "")
	}
	return newLoop(a.surroundings, unwritten(a))
}

// unwritten returns the Kubernetes Events of an actuator. Nothing writes them.
func unwritten(a *Actuator) *kubeEvents {
	return newKubeEvents(a.options, a.kinds, a.log, a.metrics.dropEvent)
}

// indexOf returns an index that knows the workloads.
func indexOf(workloads ...*workload.Workload) *inventory.Index {
	x := inventory.New(inventory.Options{Changed: func(workload.Key) {}, Relinked: func(workload.Key, []events.Source) {}}).Index
	for _, w := range workloads {
		x.Listed(w, "")
	}
	return x
}

// inAny lets workloads of all namespaces be popped.
func inAny(string) bool { return true }

// patcherOf returns a patcher with the options of an actuator.
func patcherOf(options Options, x *inventory.Index) *patcher {
	return newPatcher(workload.Clients{Typed: options.Client}, x, new(inventory.Namespaces), options)
}

// followingOf returns a following with the options of an actuator.
func followingOf(options Options, x *inventory.Index) *following {
	kinds, _ := options.Kinds()
	return newFollowing(x, kinds, options)
}

// follow follows a rollout that has no outcome, and unfollow stops that.
func (f *following) follow(key workload.Key, r *rollout) {
	f.rollouts[key] = r
	f.moved(key)
}

func (f *following) unfollow(key workload.Key) {
	delete(f.rollouts, key)
	f.moved(key)
}

// resumerOf returns a resumer with the options of an actuator.
func resumerOf(options Options, bus *events.Bus) *resumer {
	return &resumer{bus: bus, origins: events.Origins{Cluster: options.Cluster, StoresFrom: options.StoresFrom}, log: options.Logger}
}

// eventOf returns an event that was delivered.
func eventOf(change events.Change) *inFlightEvent {
	return &inFlightEvent{delivery: &events.Delivery{Change: change}, span: trace.SpanFromContext(context.Background())}
}

// pendingChangeOf returns a change with an event that is not finished when it is released, because no message came with it.
func pendingChangeOf(change events.Change) *pendingChange {
	e := eventOf(change)
	e.open, e.delivery.Received = 2, written
	return &pendingChange{change: change, event: e, received: written, since: change.Time}
}

// pendingOf returns the pending changes of a workload.
func pendingOf(w *workload.Workload, changes ...events.Change) *pending {
	p := newPending(w.Key(), written)
	for _, change := range changes {
		p.changes[change.Source] = pendingChangeOf(change)
	}
	return p
}

// pend makes a workload wait in the debounce window with a pending change.
func (d *debounce) pend(w *workload.Workload, change events.Change) *pending {
	p := d.byKey[w.Key()]
	if p == nil {
		p = newPending(w.Key(), written)
		d.byKey[p.key] = p
	}
	p.changes[change.Source] = pendingChangeOf(change)
	return p
}

// countHeld counts the workloads that wait for something other than a time or people.
func (d *debounce) countHeld() int {
	count := 0
	for _, held := range d.holds.by {
		count += len(held)
	}
	return count
}

// decisionOf returns the decision about a change without a policy. From is that of plan.Past.
func decisionOf(w *workload.Workload, now events.Change, from *events.Change) plan.Decision {
	return plan.Policy{}.Decide(w, now, plan.Past{From: from})
}

// decisionsOf returns the decisions about all pending changes of a workload.
func decisionsOf(w *workload.Workload, p *pending) []plan.Decision {
	var decisions []plan.Decision
	for _, c := range p.changes {
		decisions = append(decisions, decisionOf(w, c.change, c.from))
	}
	return decisions
}

// named gives the workload another name, for tests with several.
func named(name string, mutate func(*workload.Workload)) func(*workload.Workload) {
	return func(w *workload.Workload) {
		w.ID.Name, w.ID.UID = name, "uid-"+name
		if mutate != nil {
			mutate(w)
		}
	}
}

var wholeDB = workload.Reference{Kind: events.KindSecret, Name: "db"}
