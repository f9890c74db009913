package forcesync

import (
	"bytes"
	"context"
	"io"
	"log/slog"
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
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// dynamicOf returns a client of the objects.
func dynamicOf(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		externalsecret.ExternalSecrets:        "ExternalSecretList",
		externalsecret.SecretStores:           "SecretStoreList",
		externalsecret.ClusterSecretStores:    "ClusterSecretStoreList",
		externalsecret.ClusterExternalSecrets: "ClusterExternalSecretList",
	}, objects...)
}

// custom returns an object of External Secrets Operator.
func custom(b *indexBed, kind, text string) *unstructured.Unstructured {
	obj := b.object(text)
	obj.SetAPIVersion(externalsecret.APIVersion)
	obj.SetKind(kind)
	return obj
}

// watchOf runs a Watch until the test ends or stop is called.
func watchOf(t *testing.T, client *dynamicfake.FakeDynamicClient, log io.Writer, namespaces ...string) (w *Watch, stop func()) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	w = &Watch{Index: NewIndex(), Client: client, Namespaces: namespaces, Lists: kube.NewFirstLists(), Log: slog.New(slog.NewTextHandler(log, nil))}
	w.Expect()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return w, stop
}

const (
	watchedSecret = "{metadata: {name: db, namespace: shop, uid: u, annotations: {a: b}}, spec: {secretStoreRef: {name: bao}, data: [{remoteRef: {key: shop/db}}]}}"
	watchedStore  = "{metadata: {name: bao, namespace: shop, uid: s}, spec: {provider: {vault: {server: 'https://bao', path: secret}}}}"
)

func TestWhatIsWatchedIsKnownWhenTheActuatorIsReady(t *testing.T) {
	b := newIndexBed(t)
	client := dynamicOf(custom(b, "ExternalSecret", watchedSecret), custom(b, "SecretStore", watchedStore),
		custom(b, "ClusterExternalSecret", "{metadata: {name: all, uid: c}}"))
	w, stop := watchOf(t, client, io.Discard)
	<-w.Lists.Done()
	b.Index = w.Index
	b.wantReaders("shop/db", "db")
	if w.Index.target(&externalsecret.ExternalSecret{Owner: "all"}).Name != "all" {
		t.Error("the ClusterExternalSecret is not known")
	}
	ctx := t.Context()
	changed := custom(b, "ExternalSecret", strings.ReplaceAll(watchedSecret, "shop/db", "shop/mail"))
	if _, err := client.Resource(externalsecret.ExternalSecrets).Namespace("shop").Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the change is seen", func() bool { return len(b.readers("shop/mail")) == 1 })
	testkit.Must(t, client.Resource(externalsecret.ExternalSecrets).Namespace("shop").Delete(ctx, "db", metav1.DeleteOptions{}))
	testkit.Eventually(t, "the end is seen", func() bool { return len(b.readers("shop/mail")) == 0 })
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
			if action.GetResource().Version == externalsecret.ExternalSecrets.Version {
				asked.Add(1)
			}
			return missing.Load(), nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
		})
		var log bytes.Buffer
		w, stop := watchOf(t, client, &log)
		defer stop()
		synctest.Wait()
		if err := w.Lists.Ready(); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
		if lines, told := strings.Count(log.String(), "\n"), strings.Count(log.String(), "external secrets api not installed"); lines != 4 || told != 4 {
			t.Errorf("%d lines, of which %d say that it is not installed, want one for each of 4 resources:\n%s", lines, told, &log)
		}
		<-time.After(10*apiRetry + time.Second)
		synctest.Wait()
		if got := asked.Load(); got != 11*4 {
			t.Errorf("it was asked %d times, want once a minute for each of 4 resources", got)
		}
		missing.Store(false)
		<-time.After(apiRetry + time.Second)
		synctest.Wait()
		b.Index = w.Index
		b.wantReaders("shop/db", "db")
	})
}
