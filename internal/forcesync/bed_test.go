package forcesync

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const (
	maxSyncs = 5                      // how many ExternalSecrets may be patched and not synced at a time
	ownSyncs = 3                      // how many of these may be in one namespace
	syncTime = 100 * time.Millisecond // how long the operator takes for a sync, unless a test says otherwise
)

// bed is a cluster of one test, in the time of testing/synctest: an API server with ExternalSecrets, External Secrets Operator, a watcher of
// what that writes, and the Syncer of an actuator.
type bed struct {
	*testing.T
	y  *Syncer
	do chan func()
	// stop stops the actuator.
	stop func()
	// published and warned are what the Syncer reported since the last call of outcomes or warnings; active counts the slots in use.
	published []events.Outcome
	warned    []string
	active    int64

	mu      sync.Mutex
	version int
	objects map[types.NamespacedName]*unstructured.Unstructured // ClusterExternalSecrets have no namespace
	patches []string
	refuse  error

	// The operator.
	queue         chan types.NamespacedName
	took          time.Duration                     // for a sync
	read          func(types.NamespacedName) string // what a sync reads; nil reads what the last rotation wrote
	deaf, failing map[string]bool                   // the ExternalSecrets that the operator ignores, and those that it cannot sync
	reason        string                            // of the condition after a success
	message       string                            // of the condition after a failure
	// synced are the ExternalSecrets that the operator has synced, in order. pending are those that were patched and not synced, and most is
	// the highest number of them.
	synced  []string
	pending map[types.NamespacedName]bool
	most    int
	content string
	written map[types.NamespacedName]string
}

func newBed(t *testing.T) *bed {
	b := &bed{
		T: t, do: make(chan func()), objects: make(map[types.NamespacedName]*unstructured.Unstructured),
		queue: make(chan types.NamespacedName, 10000), took: syncTime, content: "1",
		deaf: make(map[string]bool), failing: make(map[string]bool),
		pending: make(map[types.NamespacedName]bool), written: make(map[types.NamespacedName]string),
	}
	go b.operate(t.Context())
	return b
}

// options returns Options with a client of the cluster.
func (b *bed) options() Options {
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("patch", "*", b.patch)
	return Options{
		Cluster: "demo", MaxSyncs: maxSyncs, Client: client, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Tracer: tracenoop.NewTracerProvider().Tracer(""),
	}
}

// ReportSync implements Host.
func (b *bed) ReportSync(_ context.Context, outcome events.Outcome, warning string, _ time.Duration) {
	b.published = append(b.published, outcome)
	if warning != "" {
		b.warned = append(b.warned, outcome.Workload.Name+" "+warning+" "+outcome.Reason+": "+outcome.Message)
	}
}

// CountSync implements Host.
func (b *bed) CountSync(_ context.Context, change int64) { b.active += change }

// CountFailedSync implements Host.
func (b *bed) CountFailedSync(context.Context) {}

// start starts an actuator, after stopping the previous one.
func (b *bed) start() { b.startWith(b.options()) }

func (b *bed) startWith(options Options) {
	b.Helper()
	if b.stop != nil {
		b.stop()
	}
	index := NewIndex()
	y := New(options, b, index)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.y, b.active = y, 0
	index.put(externalsecret.ReadStore(parse(b, "metadata: {name: bao}\nspec: {provider: {vault: {server: 'https://bao', path: secret}}}")), false)
	index.put(externalsecret.ReadStore(parse(b,
		"metadata: {name: roles}\nspec: {provider: {vault: {server: 'https://bao', path: database, version: v1}}}")), false)
	for _, name := range slices.SortedFunc(maps.Keys(b.objects), compareNames) {
		b.show(b.objects[name])
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer y.Stop(b.Context())
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

// left describes the syncs that the Syncer has not finished. Empty if there are none.
func (b *bed) left() string {
	if len(b.y.pending) == 0 && b.y.slots.Free() == maxSyncs && b.active == 0 {
		return ""
	}
	return fmt.Sprintf("%+v, %d free, %d active", b.y.pending, b.y.slots.Free(), b.active)
}

// with calls a function while nothing else changes the cluster.
func (b *bed) with(what func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what()
}

// pass lets time pass, and waits for everything that happens in that time.
func (b *bed) pass(d time.Duration) {
	<-time.After(d)
	b.ask(func() {})
}

// ask calls a function on the actuator's goroutine.
func (b *bed) ask(what func()) {
	done := make(chan struct{})
	b.do <- func() { defer close(done); what() }
	<-done
}

// isSettled reports whether an event was taken and nothing holds it any more, and with which error.
func (b *bed) isSettled(e *event) (done bool, err error) {
	b.ask(func() { done, err = e.taken && e.holds == 0, e.err })
	return done, err
}

// mustSettle checks that an event is settled without an error.
func (b *bed) mustSettle(e *event) {
	b.Helper()
	if done, err := b.isSettled(e); !done || err != nil {
		b.Errorf("settled: %t (%v), want true without an error", done, err)
	}
}

// outcomes returns the outcomes since the last call: "db skipped no-change".
func (b *bed) outcomes() []string {
	b.Helper()
	var published []events.Outcome
	b.ask(func() { published, b.published = b.published, nil })
	var lines []string
	for _, outcome := range published {
		if _, err := outcome.Encode(); err != nil {
			b.Errorf("an outcome cannot be published: %v", err)
		}
		lines = append(lines, outcome.Workload.Name+" "+string(outcome.Verb)+" "+outcome.Reason)
	}
	return lines
}

// warnings returns the Kubernetes Events since the last call.
func (b *bed) warnings() []string {
	var warned []string
	b.ask(func() { warned, b.warned = b.warned, nil })
	return warned
}

// taken returns the patches since the last call: "db main/root/secret/shop/db/2".
func (b *bed) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.patches
	b.patches = nil
	return taken
}
