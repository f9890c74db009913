package sources

import (
	"context"
	"errors"
	"log/slog"
	"strings"
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
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

func TestOnlyAPermissionThatIsMissingStillIsNamed(t *testing.T) {
	for _, granted := range []string{"secrets", "namespaces"} {
		t.Run(granted, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				var isGranted atomic.Bool
				client := fake.NewClientset()
				for _, resource := range []string{"secrets", "configmaps", "namespaces"} {
					client.PrependReactor("list", resource, func(k8stesting.Action) (bool, runtime.Object, error) {
						if resource == granted && isGranted.Load() {
							return false, nil, nil
						}
						return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
					})
				}
				ready := &readiness{}
				failures := &watchErrors{readiness: ready, now: time.Now, log: slog.New(slog.DiscardHandler)}
				pending := newPendingSources(time.Now)
				defer pending.shutDown()
				maker := &informerMaker{client: client, ring: ringOf(t), handler: cache.ResourceEventHandlerFuncs{}, errors: failures}
				within := scope{selected: newNamespaceFilter(client, labels.SelectorFromSet(labels.Set{"team": "a"}), nil)}
				set := &informerSet{scope: within, ledger: newLedger(), pending: pending, errors: failures}
				for _, kind := range []kinds.Kind{kindOf(t, events.KindSecret), kindOf(t, events.KindConfigMap)} {
					made, err := maker.makeAll(kind, within.listed())
					must(t, err)
					set.kinds = append(set.kinds, made)
				}
				var running sync.WaitGroup
				must(t, set.start(ctx, &running))
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
				if got := missing(); len(got) != 2 || strings.Contains(strings.Join(got, " "), granted) {
					t.Errorf("%v are missing, want all but %s", got, granted)
				}
			})
		})
	}
}

func TestAMissingPermissionKeepsTheWatcherFromBeingReady(t *testing.T) {
	log, ready, state := &lockedBuffer{}, &readiness{}, &installState{}
	failures := &watchErrors{readiness: ready, now: time.Now, log: slog.New(slog.NewJSONHandler(log, nil))}
	handle := failures.of("externalsecrets", "rbac.yaml", state)
	handle(t.Context(), nil, apierrors.NewForbidden(externalsecret.ExternalSecrets.GroupResource(), "", errors.New("no")))
	if err := ready.problem(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "rbac.yaml") {
		t.Errorf("the problem is %v", err)
	}
	if !strings.Contains(log.String(), `"msg":"permission missing"`) {
		t.Errorf("the log is:\n%s", log)
	}
	if state.absent.Load() || !state.troubled.Load() {
		t.Error("it is taken for not installed")
	}
	ready.complete.Store(true)
	if err := ready.problem(); err != nil {
		t.Errorf("in the end the problem is %v", err)
	}
}
