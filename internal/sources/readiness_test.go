package sources

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestOnlyAPermissionThatIsMissingStillIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var isGranted atomic.Bool
		client := fake.NewClientset()
		for _, resource := range []string{"secrets", "configmaps", "namespaces"} {
			client.PrependReactor("list", resource, func(k8stesting.Action) (bool, runtime.Object, error) {
				if resource != "configmaps" && isGranted.Load() {
					return false, nil, nil
				}
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
			})
		}
		ready := &readiness{}
		failures := &watchErrors{readiness: ready, now: time.Now, log: slog.New(slog.DiscardHandler)}
		pending := newPendingSources(time.Now)
		defer pending.shutDown()
		within := scope{selected: newNamespaceFilter(client, labels.SelectorFromSet(labels.Set{"team": "a"}), nil)}
		set := &informerSet{scope: within, cached: make(kinds.Cache), ledger: newLedger(), pending: pending, errors: failures}
		for _, kind := range []kinds.Kind{kindOf(t, events.KindSecret), kindOf(t, events.KindConfigMap)} {
			set.add(kind, &informerOptions{client: client, ring: ringOf(t), handler: &objectHandler{}})
		}
		var running sync.WaitGroup
		set.start(ctx, &running)
		defer running.Wait()
		defer stop()
		missing := func() (names []string) {
			ready.denied.Range(func(resource, _ any) bool {
				names = append(names, resource.(string))
				return true
			})
			return names
		}
		synctest.Wait()
		if got := missing(); len(got) != 3 {
			t.Errorf("%v are missing, want all three", got)
		}
		isGranted.Store(true)
		<-time.After(10 * time.Minute)
		synctest.Wait()
		testkit.WantEqual(t, "what is missing", []string{"configmaps"}, missing())
	})
}
