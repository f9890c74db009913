package forcesync

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/tests/testkit"
)

// dynamicOf returns a client of the objects.
func dynamicOf(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{
		externalsecret.ExternalSecrets:        "ExternalSecretList",
		externalsecret.SecretStores:           "SecretStoreList",
		externalsecret.ClusterSecretStores:    "ClusterSecretStoreList",
		externalsecret.ClusterExternalSecrets: "ClusterExternalSecretList",
	}
	for resource, kind := range maps.Clone(kinds) {
		kinds[resource.GroupResource().WithVersion(oldVersion)] = kind
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

// custom returns an object of External Secrets Operator.
func custom(b *indexBed, kind, text string) *unstructured.Unstructured {
	obj := b.object(text)
	obj.SetAPIVersion(externalsecret.APIVersion)
	obj.SetKind(kind)
	return obj
}

// readiness records what a Watch reports about the first lists.
type readiness struct {
	mu sync.Mutex
	// listed has each resource, and whether it was listed.
	listed map[string]bool
	denied map[string]error
}

// ready reports whether everything was listed.
func (r *readiness) ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, listed := range r.listed {
		if !listed {
			return false
		}
	}
	return true
}

// denial returns the error of a resource that may not be listed.
func (r *readiness) denial(resource string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied[resource]
}

// watchOf runs a Watch until the test ends or stop is called. ready reports whether everything was listed.
func watchOf(t *testing.T, client *dynamicfake.FakeDynamicClient, namespaces ...string) (index *Index, r *readiness, ready func() bool, stop func()) {
	r = &readiness{listed: make(map[string]bool), denied: make(map[string]error)}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	index = NewIndex()
	w := NewWatch(WatchOptions{
		Client: client, Namespaces: namespaces, Log: slog.New(slog.DiscardHandler),
		Expect: func(resource string) { r.listed[resource] = false },
		Listed: func(resource string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.listed[resource] = true
		},
		Denied: func(_ context.Context, resource string, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if err != nil {
				r.denied[resource] = err
			}
		},
	}, index)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return index, r, r.ready, stop
}

const (
	watchedSecret = "{metadata: {name: db, namespace: shop, uid: u, annotations: {a: b}}, spec: {secretStoreRef: {name: bao}, data: [{remoteRef: {key: shop/db}}]}}"
	watchedStore  = "{metadata: {name: bao, namespace: shop, uid: s}, spec: {provider: {vault: {server: 'https://bao', path: secret}}}}"
)

func TestWhatIsWatchedIsKnownWhenTheActuatorIsReady(t *testing.T) {
	b := newIndexBed(t)
	client := dynamicOf(custom(b, "ExternalSecret", watchedSecret), custom(b, "SecretStore", watchedStore),
		custom(b, "ClusterExternalSecret", "{metadata: {name: all, uid: c}}"))
	index, _, ready, stop := watchOf(t, client)
	testkit.Eventually(t, "it is ready", ready)
	b.Index = index
	b.wantReaders("shop/db", "db")
	if index.owner(&externalsecret.ExternalSecret{Owner: "all"}) == nil {
		t.Error("the ClusterExternalSecret is not known")
	}
	ctx := t.Context()
	changed := custom(b, "ExternalSecret", strings.ReplaceAll(watchedSecret, "shop/db", "shop/mail"))
	if _, err := client.Resource(externalsecret.ExternalSecrets).Namespace("shop").Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the change is seen", func() bool { return len(b.readers("shop/mail")) == 1 })
	if err := client.Resource(externalsecret.ExternalSecrets).Namespace("shop").Delete(ctx, "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the end is seen", func() bool { return len(b.readers("shop/mail")) == 0 })
	stop()
}

func TestAnOperatorThatIsTooOldIsTold(t *testing.T) {
	for _, test := range []struct{ name, served, want string }{
		{name: "one that serves an old version only", served: "v1beta1", want: "external secrets api too old"},
		{name: "not one that is not installed", served: "none", want: "external secrets api not installed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := dynamicOf()
				client.PrependReactor("list", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
					if action.GetResource().Version == test.served {
						return true, &unstructured.UnstructuredList{}, nil
					}
					return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
				})
				var log bytes.Buffer
				w := NewWatch(WatchOptions{
					Client: client, Namespaces: []string{metav1.NamespaceAll}, Log: slog.New(slog.NewTextHandler(&log, nil)),
					Expect: func(string) {}, Listed: func(string) {}, Denied: func(context.Context, string, error) {},
				}, NewIndex())
				ctx, cancel := context.WithTimeout(t.Context(), 10*apiRetry)
				defer cancel()
				w.Run(ctx)
				if lines, said := strings.Count(log.String(), "\n"), strings.Count(log.String(), test.want); said != len(w.resources) || lines != said {
					t.Errorf("%d lines, %d of them say %q, want one for each resource:\n%s", lines, said, test.want, &log)
				}
			})
		})
	}
}

func TestAnOperatorThatIsNotInstalledHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newIndexBed(t)
		client := dynamicOf(custom(b, "ExternalSecret", watchedSecret), custom(b, "SecretStore", watchedStore))
		var missing atomic.Bool
		missing.Store(true)
		var asked atomic.Int32
		client.PrependReactor("list", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
			if action.GetResource().Version == externalsecret.ExternalSecrets.Version {
				asked.Add(1)
			}
			return missing.Load(), nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
		})
		index, _, ready, stop := watchOf(t, client)
		defer stop()
		synctest.Wait()
		if !ready() {
			t.Error("it is not ready")
		}
		<-time.After(10*apiRetry + time.Second)
		synctest.Wait()
		if got := asked.Load(); got != 11*4 {
			t.Errorf("it was asked %d times, want once a minute for each of 4 resources", got)
		}
		missing.Store(false)
		<-time.After(apiRetry + time.Second)
		synctest.Wait()
		b.Index = index
		b.wantReaders("shop/db", "db")
	})
}

func TestAMissingRightToExternalSecretsIsNamed(t *testing.T) {
	client := dynamicOf()
	client.PrependReactor("list", "secretstores", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	_, r, _, _ := watchOf(t, client, "shop")
	const want = "no permission to list and watch secretstores in namespace shop; grant it as in deploy/components/secret-stores: "
	testkit.Eventually(t, "it is named", func() bool {
		err := r.denial("secretstores in namespace shop")
		return err != nil && strings.HasPrefix(err.Error(), want)
	})
}
