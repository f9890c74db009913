package forcesync

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// maxSyncs is how many ExternalSecrets may be patched and not synced at a time.
const maxSyncs = 5

// bed is a cluster with ExternalSecrets, an API server that takes patches of them, External Secrets Operator, a watcher
// of what it writes, and the syncer of an actuator. It lives in the time of testing/synctest.
type bed struct {
	*testing.T
	y  *Syncer
	do chan func()
	// stop ends the actuator.
	stop func()
	// settled has the events that are done with.
	settled map[*event]error
	// published and warned are what was told since the last call of outcomes or warnings, and active is how many slots are taken.
	published []events.Outcome
	warned    []string
	active    int64

	mu      sync.Mutex
	version int
	objects map[types.NamespacedName]*unstructured.Unstructured // without a namespace: ClusterExternalSecrets
	patches []string
	refuse  error

	// The operator.
	queue chan types.NamespacedName
	// took is how long a sync takes.
	took time.Duration
	// read gives the content that a sync reads. Nil: what the last rotation wrote.
	read func(types.NamespacedName) string
	// deaf and failing are what the operator does not see, and cannot sync.
	deaf, failing map[string]bool
	// synced are the names of what was synced, in order, and most is how many were asked and not synced at a time.
	synced  []string
	pending map[types.NamespacedName]bool
	most    int
	content string
	written map[types.NamespacedName]string
}

func newBed(t *testing.T) *bed {
	b := &bed{
		T: t, do: make(chan func()), objects: make(map[types.NamespacedName]*unstructured.Unstructured),
		queue: make(chan types.NamespacedName, 10000), took: 100 * time.Millisecond, content: "1",
		deaf: make(map[string]bool), failing: make(map[string]bool),
		pending: make(map[types.NamespacedName]bool), written: make(map[types.NamespacedName]string),
	}
	go b.operate(t.Context())
	return b
}

// host is that of an actuator that talks to the cluster.
func (b *bed) host() Host {
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("patch", "*", b.patch)
	return Host{
		Cluster: "demo", MaxSyncs: maxSyncs, Timeout: 5 * time.Minute, Client: client, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Tracer: tracenoop.NewTracerProvider().Tracer(""),
		Publish: func(outcome events.Outcome) { b.published = append(b.published, outcome) },
		Warn: func(_ context.Context, outcome events.Outcome, reason, message string) {
			b.warned = append(b.warned, outcome.Workload.Name+" "+reason+" "+message)
		},
		Metrics: Metrics{
			Active:      func(_ context.Context, change int64) { b.active += change },
			Finished:    func(context.Context, string, time.Duration) {},
			PatchFailed: func(context.Context) {},
		},
	}
}

// start runs a syncer, in place of the one before, in a loop like that of the actuator.
func (b *bed) start(host Host) {
	b.Helper()
	if b.stop != nil {
		b.stop()
	}
	index := NewIndex()
	y := New(host, index)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.y, b.settled, b.active = y, make(map[*event]error), 0
	index.put(externalsecret.ReadStore(b.parse("metadata: {name: bao}\nspec: {provider: {vault: {server: 'https://bao', path: secret}}}")))
	for _, name := range slices.SortedFunc(maps.Keys(b.objects), compareNames) {
		b.show(b.objects[name])
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer y.Stop()
		b.loop(ctx, y)
	}()
	b.stop = func() { cancel(); <-ended }
}

func (b *bed) loop(ctx context.Context, y *Syncer) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-y.Signal():
			y.Collect(ctx)
		case f := <-b.do:
			f()
		case <-timer.C:
		}
		y.Advance(ctx)
		timer.Stop()
		if next, ok := y.Next(); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// left describes what the syncer has of syncs that are not finished; empty if all are.
func (b *bed) left() string {
	t := b.y.tracker
	if len(t.pending.byKey)+len(t.pending.bySecret)+len(t.pending.byTarget)+len(t.turns.order)+len(t.turns.waiting)+len(t.agenda)+t.slots.used == 0 && b.active == 0 {
		return ""
	}
	return fmt.Sprintf("%+v, %d active", *t, b.active)
}

// with has something done while nothing else touches the cluster.
func (b *bed) with(what func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what()
}

func compareNames(a, b types.NamespacedName) int {
	if a.String() < b.String() {
		return -1
	}
	return 1
}

func (b *bed) parse(text string) *unstructured.Unstructured {
	b.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		b.Fatalf("%v in:\n%s", err, text)
	}
	return obj
}

// secret makes an ExternalSecret in the namespace shop that reads a path of the mount secret, and was synced.
func (b *bed) secret(name, path, spec string) {
	b.Helper()
	b.add(b.parse(fmt.Sprintf(`
metadata: {name: %s, namespace: shop, uid: uid-%[1]s}
spec: {secretStoreRef: {name: bao, kind: ClusterSecretStore}, refreshInterval: 1h, data: [{remoteRef: {key: %s}}]%s}
status: {syncedResourceVersion: "1-", refreshTime: "2000-01-01T00:00:00Z", conditions: [{type: Ready, status: "True"}]}
`, name, path, spec)))
}

func (b *bed) add(obj *unstructured.Unstructured) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(obj)
	b.written[nameOf(obj)] = "1"
}

// remove deletes an object.
func (b *bed) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	obj := b.objects[types.NamespacedName{Namespace: "shop", Name: name}]
	delete(b.objects, nameOf(obj))
	b.y.index.drop(externalsecret.Read(obj))
}

// write stores an object as the API server does, and shows it to the actuator.
func (b *bed) write(obj *unstructured.Unstructured) {
	b.version++
	obj.SetResourceVersion(strconv.Itoa(b.version))
	b.objects[nameOf(obj)] = obj
	b.show(obj)
}

func (b *bed) show(obj *unstructured.Unstructured) {
	if b.y == nil {
		return
	}
	if obj.GetNamespace() == "" {
		b.y.index.put(externalsecret.ReadCluster(obj))
	} else {
		b.y.index.put(externalsecret.Read(obj))
	}
}

// patch does what an API server does with a patch of the actuator, and has the operator see it.
func (b *bed) patch(action k8stesting.Action) (bool, runtime.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	patch, ok := action.(k8stesting.PatchAction)
	if !ok || patch.GetPatchType() != types.MergePatchType {
		return true, nil, apierrors.NewBadRequest("it is no merge patch")
	}
	if b.refuse != nil {
		return true, nil, b.refuse
	}
	found, ok := b.objects[types.NamespacedName{Namespace: patch.GetNamespace(), Name: patch.GetName()}]
	if !ok {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: patch.GetResource().Resource}, patch.GetName())
	}
	var body struct {
		Metadata struct {
			UID         types.UID
			Annotations map[string]*string
		}
	}
	if err := json.Unmarshal(patch.GetPatch(), &body); err != nil || body.Metadata.UID != found.GetUID() {
		return true, nil, apierrors.NewConflict(schema.GroupResource{}, patch.GetName(), err)
	}
	after := found.DeepCopy()
	annotations := after.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string)
	}
	for name, value := range body.Metadata.Annotations {
		if delete(annotations, name); value != nil {
			annotations[name] = *value
		}
	}
	after.SetAnnotations(annotations)
	forced, _, _ := strings.Cut(annotations[externalsecret.AnnotationForceSync], "@")
	b.patches = append(b.patches, patch.GetName()+" "+forced)
	b.write(after)
	if after.GetNamespace() != "" {
		b.notice(after)
		return true, after, nil
	}
	for _, name := range slices.SortedFunc(maps.Keys(b.objects), compareNames) {
		child := b.objects[name].DeepCopy()
		if externalsecret.Read(child).Owner == after.GetName() {
			child.SetAnnotations(map[string]string{externalsecret.AnnotationForceSync: annotations[externalsecret.AnnotationForceSync]})
			b.write(child)
			b.notice(child)
		}
	}
	return true, after, nil
}

// notice has the operator see an ExternalSecret.
func (b *bed) notice(obj *unstructured.Unstructured) {
	b.pending[nameOf(obj)] = true
	b.most = max(b.most, len(b.pending))
	if !b.deaf[obj.GetName()] {
		b.queue <- nameOf(obj)
	}
}

// operate syncs one after the other, as the operator does by default.
func (b *bed) operate(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-b.queue:
			select {
			case <-ctx.Done():
				return
			case <-time.After(b.took):
				b.sync(ctx, name)
			}
		}
	}
}

func (b *bed) sync(ctx context.Context, name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.objects[name]
	if !ok {
		return
	}
	after := found.DeepCopy()
	conditions := []any{map[string]any{"type": "Ready", "status": "True"}}
	status := map[string]any{
		"syncedResourceVersion": fmt.Sprintf("1-%v", after.GetAnnotations()),
		"refreshTime":           time.Now().UTC().Format(time.RFC3339), "conditions": conditions,
	}
	if b.failing[name.Name] {
		status, _, _ = unstructured.NestedMap(found.Object, "status")
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": "False"}}
	} else {
		b.synced = append(b.synced, name.Name)
		delete(b.pending, name)
		content := b.content
		if b.read != nil {
			content = b.read(name)
		}
		if b.written[name] != content {
			b.written[name] = content
			b.deliver(ctx, events.Change{
				Source: externalsecret.Read(found).Target, Verb: events.VerbChanged, UID: "s", ResourceVersion: "1", ChangedAt: "1",
			})
		}
	}
	after.Object["status"] = status
	b.write(after)
}

// event is one in flight: it is done with when nothing holds it any more.
type event struct {
	change events.Change
	bed    *bed
	holds  int
	err    error
}

func (e *event) Hold() { e.holds++ }

func (e *event) Release(_ context.Context, err error) {
	e.holds--
	if err != nil {
		e.err = err
	}
	if e.holds == 0 {
		e.bed.settled[e] = e.err
	}
}

func (b *bed) event(change events.Change) *event { return &event{change: change, bed: b} }

// take hands an event to the actuator. Call it where the state of that is.
func (b *bed) take(e *event) {
	if b.y.Take(b.Context(), e.change, trace.SpanFromContext(b.Context()), e); e.holds == 0 {
		b.settled[e] = nil
	}
}

// deliver hands an event to the actuator, without waiting for it to take it.
func (b *bed) deliver(ctx context.Context, change events.Change) *event {
	e := b.event(change)
	go func() {
		select {
		case <-ctx.Done():
		case b.do <- func() { b.take(e) }:
		}
	}()
	return e
}

// fp is a fingerprint.
func fp(letter string) string { return "k0a1b2c3d:" + strings.Repeat("0", 31) + letter }

// rotation is the event of a version that was written to a path of the mount secret.
func rotation(path string, version int64, mutate func(*events.Change)) events.Change {
	revision := strconv.FormatInt(version, 10)
	change := events.Change{
		Cluster: "demo", Source: events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: path}.Source(),
		Verb: events.VerbRotated, UID: "main", ResourceVersion: strconv.FormatInt(1000+version, 10), ChangedAt: "1", Fingerprint: fp("a"),
		Time: time.Now(), Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Store: &events.StoreState{Servers: []string{"https://bao"}, Engine: events.EngineKV, Version: version, Revision: revision, Operation: "update"},
	}
	if mutate != nil {
		mutate(&change)
	}
	return change
}

// rotate writes a version, and hands its event to the actuator.
func (b *bed) rotate(path string, version int64, mutate func(*events.Change)) *event {
	b.with(func() { b.content = path + strconv.FormatInt(version, 10) })
	return b.deliver(b.Context(), rotation(path, version, mutate))
}

// pass lets time go by, and everything that is to happen in it.
func (b *bed) pass(d time.Duration) {
	<-time.After(d)
	b.ask(func() {})
}

// ask has something done where the state of the actuator is.
func (b *bed) ask(what func()) {
	done := make(chan struct{})
	b.do <- func() { defer close(done); what() }
	<-done
}

// isSettled tells whether an event is done with, and how.
func (b *bed) isSettled(t *event) (done bool, err error) {
	b.ask(func() { err, done = b.settled[t] })
	return done, err
}

// mustSettle checks that an event is done with, without an error.
func (b *bed) mustSettle(t *event) {
	b.Helper()
	if done, err := b.isSettled(t); !done || err != nil {
		b.Errorf("the event is done with: %t (%v)", done, err)
	}
}

// outcomes are those that were told since the last call: "db skipped no-change".
func (b *bed) outcomes() []string {
	b.Helper()
	var told []string
	for _, outcome := range b.published {
		if _, err := outcome.Event(); err != nil {
			b.Errorf("an outcome cannot be published: %v", err)
		}
		told = append(told, outcome.Workload.Name+" "+string(outcome.Verb)+" "+outcome.Reason)
	}
	b.published = nil
	return told
}

// warnings are the Kubernetes Events that were written since the last call.
func (b *bed) warnings() []string {
	told := b.warned
	b.warned = nil
	return told
}

// taken gives what was patched since the last call: "db main/root/secret/shop/db/2".
func (b *bed) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.patches
	b.patches = nil
	return taken
}
