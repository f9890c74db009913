package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// stream is a bus that takes no event while it is down, nor the next ones that fail.
type stream struct {
	down  bool
	fails int
	has   []events.Projection
}

func (s *stream) Cluster() string { return "prod" }

func (s *stream) PublishProjection(_ context.Context, p events.Projection) error {
	if s.fails--; s.down || s.fails >= 0 {
		return errors.New("nats is not connected")
	}
	s.has = append(s.has, p)
	return nil
}

// reasons are those that were published.
func (s *stream) reasons() []string {
	var list []string
	for _, p := range s.has {
		list = append(list, p.Reason)
	}
	return list
}

// bench is a loop that the test steps by hand, with an API server that answers an apply as the test says.
type bench struct {
	*testing.T
	*loop
	store  *testStore
	bus    *stream
	client *fake.Clientset
	main   key
	// answer is what the API server answers, nil: it stores what is applied as version. clock is the time.
	answer  error
	version int
	// shared has the API server say that another manager owns the password, too.
	shared  bool
	applied int
	clock   time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	metrics, err := newMetrics(noop.NewMeterProvider().Meter(""))
	testkit.Must(t, err)
	b := &bench{
		T: t, bus: &stream{}, client: fake.NewClientset(), main: key{kind: "widget", namespace: "shop", name: "main"}, version: 10,
		clock: time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC),
	}
	b.store, _ = testIndex(t)
	writer := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	writer.PrependReactor("patch", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if b.applied++; b.answer != nil {
			return true, nil, b.answer
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(action.(clienttesting.PatchAction).GetPatch()); err != nil {
			t.Error(err)
		}
		password, _, _ := unstructured.NestedString(object.Object, "spec", "auth", "password")
		stored := equal(password)
		if b.shared {
			stored.SetManagedFields(append(stored.GetManagedFields(), another...))
		}
		stored.SetResourceVersion(strconv.Itoa(b.version))
		return true, stored, nil
	})
	log, now := slog.New(slog.DiscardHandler), func() time.Time { return b.clock }
	b.loop = &loop{
		index: b.store.index, log: log, now: now, items: make(map[key]*item),
		apply:    &applier{client: b.client, dynamic: writer, index: b.store.index},
		reporter: &reporter{client: b.client, bus: b.bus, metrics: metrics, tracer: tracenoop.NewTracerProvider().Tracer(""), log: log, now: now},
		queue:    workqueue.NewTypedDelayingQueue[key](), left: make(chan events.Projection, maxLeft),
	}
	t.Cleanup(b.queue.ShutDown)
	return b
}

const wantsDB = "spec.auth.password=secret/db/password"

// secret has the Secret have a password.
func (b *bench) secret(password string) {
	b.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Data: map[string][]byte{"password": []byte(password)}}
	_ = b.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", "db")
	testkit.Must(b, b.client.Tracker().Add(object))
}

// sees has the watch tell of the resource.
func (b *bench) sees(wants, password string) {
	b.Helper()
	object := equal(password)
	object.SetAnnotations(map[string]string{annotation: wants})
	testkit.Must(b, b.store.Update(object))
}

// steps deals with the resource so often, some time apart.
func (b *bench) steps(count int) {
	for range count {
		b.clock = b.clock.Add(2 * time.Minute)
		b.step(b.Context(), b.main)
	}
}

// publishes publishes the reports of resources that are gone for a time.
func (b *bench) publishes(lasting time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), lasting)
	defer cancel()
	b.publishLeft(ctx)
}

// reports fails the test unless these, and no others, were published.
func (b *bench) reports(want ...string) {
	b.Helper()
	testkit.WantEqual(b, "reports", want, b.bus.reasons())
}

// wroteEvents fails the test unless so many Kubernetes Events were written.
func (b *bench) wroteEvents(want int) {
	b.Helper()
	got := 0
	for _, action := range b.client.Actions() {
		if action.Matches("create", "events") {
			got++
		}
	}
	if got != want {
		b.Errorf("got %d Kubernetes Events, want %d", got, want)
	}
}

// equal is a widget that has the password and no other field of the projector.
func equal(password string) *unstructured.Unstructured {
	object := widget("main", wantsDB, password)
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:auth":{"f:password":{}}}}`),
	}})
	return object
}

func answered(code int32, why metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: why}}
}

func TestNoReportIsLostOrDoubledWhileTheStreamIsAway(t *testing.T) {
	b := newBench(t)
	b.bus.down = true
	b.secret("b")
	b.sees(wantsDB, "a")
	b.add(b.main, testCause())
	b.steps(3)
	b.secret("c")
	b.version++
	b.steps(3)
	b.answer = answered(422, metav1.StatusReasonInvalid)
	b.secret("d")
	b.add(b.main, testCause())
	b.steps(4)
	b.bus.down = false
	b.steps(2)
	b.reports("applied", "applied", "rejected")
	b.wroteEvents(3)
}

func TestOfManyReportsThatCannotBePublishedTheNewestAreKept(t *testing.T) {
	b := newBench(t)
	b.bus.down = true
	b.sees(wantsDB, "a")
	for i := range maxOwed + 5 {
		b.secret(strconv.Itoa(i))
		b.version++
		b.steps(1)
	}
	b.bus.down = false
	b.steps(1)
	if last := strconv.Itoa(b.version); len(b.bus.has) != maxOwed || b.bus.has[maxOwed-1].ResourceVersion != last {
		t.Errorf("got %d reports, want %d, the last about version %s", len(b.bus.has), maxOwed, last)
	}
}

func TestTheReportsOfAResourceThatWantsNothingAnyMoreArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.secret("b")
		b.sees(wantsDB, "a")
		b.steps(1)
		b.bus.down = true
		b.sees("", "b")
		b.version++
		b.steps(1)
		released := widget("main", "", "b")
		released.SetManagedFields(nil)
		testkit.Must(t, b.store.Update(released))
		b.steps(1)
		if len(b.items) != 0 {
			t.Errorf("%d resources are known, want none", len(b.items))
		}
		b.reports("applied")
		b.bus.down, b.bus.fails = false, 2
		b.publishes(time.Minute)
		b.reports("applied", "released")
	})
}

func TestOfTheReportsOfManyResourcesThatAreGoneTheNewestAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range maxLeft + 5 {
			b.item(b.main).owe(events.Projection{Reason: strconv.Itoa(i)})
			b.forget(t.Context(), b.main)
		}
		b.publishes(time.Second)
		if got := b.bus.reasons(); len(got) != maxLeft || got[0] != "5" || got[maxLeft-1] != strconv.Itoa(maxLeft+4) {
			t.Errorf("published %v, want the newest %d in order", got, maxLeft)
		}
	})
}

func TestWhatIsUnavailableIsToldAgainWhenItChangesAndWhenItHasRecovered(t *testing.T) {
	b := newBench(t)
	b.secret("b")
	b.sees(wantsDB, "a")
	b.answer = answered(503, metav1.StatusReasonServiceUnavailable)
	b.steps(kube.MaxDenials - 1)
	b.reports()
	b.steps(5)
	b.reports("unavailable")
	b.answer = answered(500, metav1.StatusReasonInternalError)
	b.steps(5)
	b.reports("unavailable", "unavailable")
	b.secret("a") // so that nothing is to be written
	b.steps(3)
	b.reports("unavailable", "unavailable", "recovered")
	b.secret("b")
	b.answer = nil
	b.steps(3)
	b.reports("unavailable", "unavailable", "recovered", "applied")
}

func TestAnEventDoesNotWaitForWhatIsReportedAsUnavailable(t *testing.T) {
	b := newBench(t)
	b.secret("b")
	b.sees(wantsDB, "a")
	b.answer = answered(503, metav1.StatusReasonServiceUnavailable)
	first, second := testCause(), testCause()
	b.add(b.main, first)
	b.steps(kube.MaxDenials - 1)
	if first.left.Load() != 1 {
		t.Fatal("the event is acked before anything is reported")
	}
	b.steps(1)
	b.add(b.main, second)
	b.bus.down = true
	b.steps(1)
	if first.left.Load() != 0 || second.left.Load() != 1 {
		t.Errorf("got %d and %d resources left, want that the first event is acked, and the second is not: its report is not published", first.left.Load(), second.left.Load())
	}
	b.bus.down = false
	b.steps(3)
	if second.left.Load() != 0 {
		t.Error("the second event is not acked")
	}
	b.reports("unavailable", "unavailable")
}

func TestARefusedResourceIsDueInItsNextGeneration(t *testing.T) {
	b := newBench(t)
	due := 0
	b.index.changed = func(key) { due++ }
	sees := func(generation int64, want int) {
		t.Helper()
		due = 0
		object := widget("main", wantsDB, "a")
		object.SetGeneration(generation)
		testkit.Must(t, b.store.Update(object))
		if due != want {
			t.Errorf("generation %d: due %d times, want %d", generation, due, want)
		}
	}
	b.secret("b")
	sees(1, 1)
	sees(2, 0)
	for _, answer := range []error{answered(422, metav1.StatusReasonInvalid), answered(403, metav1.StatusReasonForbidden)} {
		b.answer = answer
		b.steps(1)
		sees(2, 0)
		sees(3, 1)
		sees(2, 0)
	}
	b.answer = nil
	b.steps(1)
	sees(4, 1) // It has another value again.

	// One that came while the API server was asked is due, too.
	due = 0
	b.index.settle(b.main, result{reason: reasonRejected, generation: 3})
	if due != 1 {
		t.Errorf("a generation that came meanwhile: due %d times, want once", due)
	}
	due = 0
	b.index.settle(b.main, result{reason: reasonForbidden})
	if due != 0 {
		t.Error("one whose Secret may not be read is due at once, for ever")
	}
}

func TestAValueThatIsNotKeptIsToldOnce(t *testing.T) {
	object := widget("main", wantsDB, "other")
	wishes, err := parseWishes(wantsDB + "; spec.auth.user=secret/db/user; spec.size=secret/db/size")
	testkit.Must(t, err)
	object.Object["spec"].(map[string]any)["size"] = "3"
	got := notKept(wishes, []string{"password", "user", "3"}, object)
	if want := []string{"spec.auth.password", "spec.auth.user"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: one has another value and one has none", got, want)
	}
}

// testCause returns a cause that is never acked.
func testCause() *cause {
	return newCause(&bus.Delivery{}, tracenoop.Span{}, 1)
}

// webhooked is an API server whose webhook does not answer for widgets other than healthy.
type webhooked struct {
	mu    sync.Mutex
	tried map[string]time.Time
}

func (w *webhooked) RoundTrip(r *http.Request) (*http.Response, error) {
	name := path.Base(r.URL.Path)
	w.mu.Lock()
	if w.tried[name].IsZero() {
		w.tried[name] = time.Now()
	}
	w.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if name != "healthy" {
		<-time.After(10 * time.Second)
		response.StatusCode = http.StatusInternalServerError
		body = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`)
	}
	response.Body = io.NopCloser(strings.NewReader(string(body)))
	return response, nil
}

func TestResourcesWhoseWebhookDoesNotAnswerDelayNoOthers(t *testing.T) {
	const hanging = 40
	synctest.Test(t, func(t *testing.T) {
		b, server := newBench(t), &webhooked{tried: map[string]time.Time{}}
		client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://api", QPS: -1}, &http.Client{Transport: server})
		testkit.Must(t, err)
		b.apply.dynamic = client
		b.now = time.Now
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Data: map[string][]byte{"password": []byte("b")}}
		testkit.Must(t, b.client.Tracker().Add(secret))
		sees := func(name string) key {
			testkit.Must(t, b.store.Update(widget(name, wantsDB, "a")))
			return key{kind: "widget", namespace: "shop", name: name}
		}
		for i := range hanging {
			k := sees(fmt.Sprintf("hanging%d", i))
			b.item(k).failures = 1
			b.queue.Add(k)
		}
		b.queue.Add(sees("healthy"))
		began := time.Now()
		var running sync.WaitGroup
		for range workers {
			running.Go(func() { b.run(t.Context()) })
		}
		<-time.After(hanging / maxRetrying * 10 * time.Second)
		b.queue.ShutDown()
		running.Wait()
		if after := server.tried["healthy"].Sub(began); after > time.Second {
			t.Errorf("another resource is written after %v, want at once", after)
		}
		if len(server.tried) != hanging+1 {
			t.Errorf("%d resources were tried, want %d", len(server.tried), hanging+1)
		}
	})
}
