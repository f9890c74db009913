package sources

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAListReportsWhatTheWatchBeforeItHasMissed(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		secret := func(name, version, value string) *kinds.Object {
			return reducedOf(t, secretOf(testSource.Namespace, name, "u-"+name, version, value))
		}
		handler := &objectHandler{contents: kinds.NewPodContents(), absence: &absence{known: newLedger()}, pending: p}
		i := newInformer(&informerOptions{handler: handler}, kindOf(t, events.KindSecret), "")
		i.Replace(t.Context(), []*kinds.Object{secret("same", "1", "one"), secret("changed", "2", "one"), secret("gone", "3", "one")}, "3")
		i.Put(t.Context(), secret("created", "4", "one"))
		for range 4 {
			source, entry, _ := p.take()
			if want := source.Name == "created"; entry.created != want || entry.gone {
				t.Errorf("%s: %+v, want created %t", source, entry, want)
			}
			p.done(source)
		}
		if got := *i.version.Load(); got != "4" {
			t.Errorf("it has reached %s, want 4", got)
		}

		i.Replace(t.Context(), []*kinds.Object{secret("same", "1", "one"), secret("changed", "8", "two"), secret("new", "7", "one")}, "9")
		got := make(map[string]queueEntry)
		for range queuedIn(p) {
			source, entry, _ := p.take()
			got[source.Name] = queueEntry{created: entry.created, gone: entry.gone, changes: entry.changes}
			p.done(source)
		}
		want := map[string]queueEntry{"changed": {changes: 1}, "new": {created: true, changes: 1}, "gone": {gone: true}, "created": {gone: true}}
		testkit.WantEqual(t, "what is queued", want, got, everyField)
		if seen := i.store.Put(secret("gone", "10", "one")); seen != nil {
			t.Errorf("the store still has %s", seen.Source)
		}
		if got := *i.version.Load(); got != "9" {
			t.Errorf("it has reached %s, want the list's 9", got)
		}
	})
}

func TestAListCountsOnceTheHandlerHasHadIt(t *testing.T) {
	p := newPendingSources(time.Now)
	defer p.shutDown()
	handler := &objectHandler{contents: kinds.NewPodContents(), absence: &absence{known: newLedger()}, pending: p}
	i := newInformer(&informerOptions{handler: handler}, kindOf(t, events.KindSecret), "")
	p.mu.Lock() // Nothing can be queued.
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.Replace(t.Context(), []*kinds.Object{objectOf(t, "u", 1, "one")}, "3")
	}()
	for i.version.Load() == nil {
		runtime.Gosched()
	}
	if i.store.Get(testSource) == nil || i.listed.Load() {
		t.Error("the list counts before its source is queued, or the store has it later than its version")
	}
	p.mu.Unlock()
	<-done
	if !i.listed.Load() {
		t.Error("the list does not count")
	}
}

func TestAKindThatIsUninstalledAndInstalledAgainIsComparedThen(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		ctx, stop := context.WithCancel(t.Context())
		kind := kindOf(t, events.KindExternalSecret)
		var mu sync.Mutex // of what the API server answers
		isServed, watched := true, watch.NewFake()
		listed := []unstructured.Unstructured{*externalSecretOf(t, "kept", 1, "True", "1", nil), *externalSecretOf(t, "gone", 2, "True", "1", nil)}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(k8sruntime.NewScheme(),
			map[schema.GroupVersionResource]string{kind.Listing().Resource: "ExternalSecretList"})
		refused := apierrors.NewNotFound(kind.Listing().Resource.GroupResource(), "")
		client.PrependReactor("list", "*", func(k8stesting.Action) (bool, k8sruntime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			if !isServed {
				return true, nil, refused
			}
			list := &unstructured.UnstructuredList{Items: listed}
			list.SetResourceVersion("9")
			return true, list, nil
		})
		client.PrependWatchReactor("*", func(k8stesting.Action) (bool, watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			if !isServed {
				return true, nil, refused
			}
			return true, watched, nil
		})
		var log testkit.Log
		logger := slog.New(slog.NewTextHandler(&log, nil))
		set := &informerSet{
			scope: everything(), cached: make(kinds.Cache), ledger: newLedger(), pending: p, dynamic: client, lookAgain: time.Minute,
			errors: &watchErrors{readiness: &readiness{}, now: time.Now, log: logger}, log: logger,
		}
		handler := &objectHandler{contents: kinds.NewPodContents(), absence: &absence{known: set.ledger}, pending: p}
		set.add(kind, &informerOptions{dynamic: client, handler: handler})
		var running sync.WaitGroup
		set.start(ctx, &running)
		defer running.Wait()
		defer stop()
		take := func(when string, want ...string) {
			t.Helper()
			<-time.After(3 * time.Minute)
			synctest.Wait()
			var got []string
			for range queuedIn(p) {
				source, entry, _ := p.take()
				got = append(got, fmt.Sprintf("%s gone %t", source.Name, entry.gone))
				p.done(source)
			}
			slices.Sort(got)
			testkit.WantEqual(t, when, want, got)
		}
		take("when it is listed", "gone gone false", "kept gone false")
		mu.Lock()
		isServed = false
		watched.Stop()
		mu.Unlock()
		take("when it is not served any more")
		mu.Lock()
		isServed, watched, listed = true, watch.NewFake(), listed[:1]
		mu.Unlock()
		take("when it is served again", "gone gone true")
		if text := log.String(); strings.Count(text, "no longer installed") != 1 || strings.Count(text, "\n") != 1 {
			t.Errorf("want one line, that the kind is no longer installed:\n%s", text)
		}
	})
}
