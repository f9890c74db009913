package actuate

import (
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/workload"
)

// dynamicOf is a client for the objects.
func dynamicOf(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		externalsecret.ExternalSecrets:        "ExternalSecretList",
		externalsecret.SecretStores:           "SecretStoreList",
		externalsecret.ClusterSecretStores:    "ClusterSecretStoreList",
		externalsecret.ClusterExternalSecrets: "ClusterExternalSecretList",
	}, objects...)
}

// custom is an object of External Secrets Operator.
func custom(b *indexBed, kind, text string) *unstructured.Unstructured {
	obj := b.object(text)
	obj.SetAPIVersion(externalsecret.APIVersion)
	obj.SetKind(kind)
	return obj
}

// watchOf watches with a client, until the test ends or the returned function is called.
func watchOf(t *testing.T, client *dynamicfake.FakeDynamicClient, namespaces ...string) (*syncIndex, *reflectors, func()) {
	options := testOptions()
	options.Dynamic, options.Namespaces = client, namespaces
	index := newSyncIndex(func(types.NamespacedName) {})
	r := newReflectors(options, newIndex(false, func(workload.Key) {}), options.Logger)
	clear(r.waiting)
	w := newSyncWatch(options, index, r, options.Logger)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return index, r, stop
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("in vain: %s", what)
		}
	}
}

const (
	watchedSecret = "{metadata: {name: db, namespace: shop, uid: u, annotations: {a: b}}, spec: {secretStoreRef: {name: bao}, data: [{remoteRef: {key: shop/db}}]}}"
	watchedStore  = "{metadata: {name: bao, namespace: shop, uid: s}, spec: {provider: {vault: {server: 'https://bao', path: secret}}}}"
)

func TestWhatIsWatchedIsKnownWhenTheActuatorIsReady(t *testing.T) {
	b := newIndexBed(t)
	client := dynamicOf(custom(b, "ExternalSecret", watchedSecret), custom(b, "SecretStore", watchedStore),
		custom(b, "ClusterExternalSecret", "{metadata: {name: all, uid: c}}"))
	index, r, stop := watchOf(t, client)
	eventually(t, "it is ready", func() bool { return r.ready() == nil })
	b.syncIndex = index
	b.wantReaders("shop/db", "db")
	if index.owner(&externalsecret.ExternalSecret{Owner: "all"}) == nil {
		t.Error("the ClusterExternalSecret is not known")
	}
	ctx := t.Context()
	changed := custom(b, "ExternalSecret", strings.ReplaceAll(watchedSecret, "shop/db", "shop/mail"))
	if _, err := client.Resource(externalsecret.ExternalSecrets).Namespace("shop").Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change is seen", func() bool { return len(b.readers("shop/mail")) == 1 })
	if err := client.Resource(externalsecret.ExternalSecrets).Namespace("shop").Delete(ctx, "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end is seen", func() bool { return len(b.readers("shop/mail")) == 0 })
	stop()
}

func TestAnOperatorThatIsNotInstalledHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newIndexBed(t)
		client := dynamicOf(custom(b, "ExternalSecret", watchedSecret), custom(b, "SecretStore", watchedStore))
		var missing atomic.Bool
		missing.Store(true)
		var asked atomic.Int32
		client.PrependReactor("list", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
			asked.Add(1)
			return missing.Load(), nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
		})
		index, r, stop := watchOf(t, client)
		defer stop()
		synctest.Wait()
		if err := r.ready(); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
		<-time.After(10*apiRetry + time.Second)
		synctest.Wait()
		if got := asked.Load(); got != 11*4 {
			t.Errorf("it was asked %d times, want once a minute for each of 4 resources", got)
		}
		missing.Store(false)
		<-time.After(apiRetry + time.Second)
		synctest.Wait()
		b.syncIndex = index
		b.wantReaders("shop/db", "db")
	})
}

func TestAMissingRightToExternalSecretsIsNamed(t *testing.T) {
	client := dynamicOf()
	client.PrependReactor("list", "secretstores", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	_, r, _ := watchOf(t, client, "shop")
	const want = "may not list and watch secretstores in namespace shop; grant it as deploy/components/secret-stores does"
	eventually(t, "readiness names it", func() bool {
		err := r.ready()
		return err != nil && strings.Contains(err.Error(), want)
	})
}
