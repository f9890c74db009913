package inventory

import (
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
)

// widgetServer is an API server with the widget web, whose kind it may not serve for a time.
type widgetServer struct {
	mu      sync.Mutex
	absent  bool
	version int
	watches []*watch.FakeWatcher
}

var widgetResource = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}

// serve makes the API server serve the kind from now on, or not.
func (s *widgetServer) serve(served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absent = !served
	s.version++
	for _, w := range s.watches {
		w.Stop()
	}
	s.watches = nil
}

func (s *widgetServer) client() *dynamicfake.FakeDynamicClient {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgetResource: "WidgetList"})
	client.PrependReactor("list", "widgets", func(k8stesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.absent {
			return true, nil, apierrors.NewNotFound(widgetResource.GroupResource(), "")
		}
		widget := unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "spec": map[string]any{"secret": "db"}}}
		widget.SetName("web")
		widget.SetNamespace("shop")
		widget.SetUID("uid-web")
		widget.SetResourceVersion("10")
		widget.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto"})
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{widget}}
		list.SetAPIVersion("example.org/v1")
		list.SetKind("WidgetList")
		list.SetResourceVersion(strconv.Itoa(100 + s.version))
		return true, list, nil
	})
	client.PrependWatchReactor("widgets", func(k8stesting.Action) (bool, watch.Interface, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.absent {
			return true, nil, apierrors.NewNotFound(widgetResource.GroupResource(), "")
		}
		events := watch.NewFake()
		s.watches = append(s.watches, events)
		return true, events, nil
	})
	return client
}

// reflectWidgets returns an index that knows the widgets, and calls linked, until the test ends.
func reflectWidgets(t *testing.T, s *widgetServer, linked func(workload.Key)) *Index {
	t.Helper()
	kinds, reading := targetsOf(t)
	widget, _ := kinds.Named("widget")
	return running(t, Options{
		Clients: workload.Clients{Dynamic: s.client()}, Kinds: workload.Kinds{widget}, Reading: reading,
		Changes: heard{func(workload.Key) {}, linked}, Met: func(*workload.Workload) {}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}).Index
}

// running runs an inventory until the bubble of the test ends, and waits until it is idle.
func running(t *testing.T, options Options) *Inventory {
	t.Helper()
	i := New(options)
	go i.Run(t.Context())
	synctest.Wait()
	return i
}

// pass lets time pass, and waits for what happens then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestAKindThatIsNotServedForAMomentLosesNoWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &widgetServer{}
		x := reflectWidgets(t, s, unlinked)
		key := workload.Key{Kind: "widget", Namespace: "shop", Name: "web"}
		wantDependents(t, x, "at first", key)
		s.serve(false)
		pass(unservedAfter / 2)
		wantDependents(t, x, "while the API server answers that it does not know the kind", key)
		if x.IsUnserved(key, time.Now()) {
			t.Error("after half a minute, its kind counts as not served")
		}
		s.serve(true)
		pass(unservedAfter)
		wantDependents(t, x, "when it is back", key)
	})
}

func TestAKindThatIsNotServedKeepsItsWorkloadsForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &widgetServer{}
		var mu sync.Mutex
		relinked := 0
		x := reflectWidgets(t, s, func(workload.Key) {
			mu.Lock()
			defer mu.Unlock()
			relinked++
		})
		key := workload.Key{Kind: "widget", Namespace: "shop", Name: "web"}
		wantUnserved := func(when string, want bool) {
			t.Helper()
			if got := x.IsUnserved(key, time.Now()); got != want {
				t.Errorf("%s, its kind counts as not served: %t, want %t", when, got, want)
			}
		}
		// wantLinked wants it to be linked since a version, empty if it is not.
		wantLinked := func(when, since string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if link, _ := x.Get(key).Link(db); link.Version != since || since != "" && relinked == 0 {
				t.Errorf("%s, it is linked since %q, and that was told %d times, want since %q", when, link.Version, relinked, since)
			}
		}
		s.serve(false)
		pass(unservedAfter + 3*installInterval)
		wantDependents(t, x, "when it was gone for a minute", key)
		wantUnserved("when it was gone for a minute", true)
		s.serve(true)
		pass(3 * installInterval)
		wantDependents(t, x, "when it is back", key)
		wantUnserved("when it is back", false)
		wantLinked("when it is back", "") // The events were passed to it.

		s.serve(false)
		pass(unservedAfter + unservedFor - installInterval)
		wantDependents(t, x, "when it was gone for almost a day", key)
		pass(3 * installInterval)
		wantDependents(t, x, "when it was gone for a day")
		wantUnserved("when it was gone for a day", false)
		s.serve(true)
		pass(3 * installInterval)
		wantDependents(t, x, "when it is back after that", key)
		wantLinked("when it is back after that", "102")
	})
}

func TestAKindThatIsNotServedAtFirstIsKnownToBeMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &widgetServer{absent: true}
		x := reflectWidgets(t, s, unlinked)
		key := workload.Key{Kind: "widget", Namespace: "shop", Name: "web"}
		if !x.IsUnserved(key, time.Now()) {
			t.Error("nobody knows that the kind is not served")
		}
		if x.IsUnserved(key, time.Now().Add(unservedFor)) {
			t.Error("it is waited for when a day is over")
		}
		s.serve(true)
		pass(3 * installInterval)
		wantDependents(t, x, "when it is served", key)
		if x.IsUnserved(key, time.Now()) {
			t.Error("it is served, and counts as if it were not")
		}
	})
}
