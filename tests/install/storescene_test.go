package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
	"github.com/keyturn/keyturn/tests/testkit"
)

// startStore starts a secret store and External Secrets, and has the API server know cert-manager's kinds, until the test ends.
func startStore(t *testing.T) *secretstore.Store {
	t.Helper()
	var store *secretstore.Store
	var operator *process.Process
	var problems [3]error
	var starting sync.WaitGroup
	starting.Go(func() { store, problems[0] = secretstore.Start(t.Context(), secretstore.Options{Log: os.Stderr}) })
	starting.Go(func() {
		operator, problems[1] = plane.StartExternalSecrets(t.Context(), 8)
	})
	starting.Go(func() { problems[2] = plane.ApplyKindsOf(t.Context(), build.CertManager) })
	starting.Wait()
	if store != nil {
		t.Cleanup(store.Stop)
	}
	if operator != nil {
		operator.StopAfter(t)
	}
	testkit.Must(t, errors.Join(problems[:]...))
	return store
}

// storeScene uses testdata/readers.yaml, whose objects read secrets in the store that change. The store is polled by reference, which is the only
// use of the watcher's permission to list stores.
func storeScene(store *secretstore.Store) scene {
	put := func(ctx context.Context, b *bench, value string) error {
		var problems []error
		for _, name := range []string{"plain", "fanned-out"} {
			_, err := store.Client().KVv2("secret").Put(ctx, b.storePath(name).Path, map[string]any{"password": value})
			problems = append(problems, err)
		}
		return errors.Join(problems...)
	}
	return scene{
		prepare: func(b *bench) {
			testkit.Must(b, put(b.Context(), b, "one"))
			b.prepareStore(store)
		},
		change: func(b *bench) {
			// What was written before the first poll is no change.
			testkit.Await(b.T, "both secrets were polled", func(context.Context) bool {
				return b.isTold(b.storePath("plain").Source()) && b.isTold(b.storePath("fanned-out").Source())
			})
			testkit.Await(b.T, "both secrets are written", func(ctx context.Context) bool { return put(ctx, b, "two") == nil })
		},
	}
}

// prepareStore has External Secrets read the secrets once, and both programs know of the store.
func (b *bench) prepareStore(store *secretstore.Store) {
	b.Helper()
	b.Cleanup(b.removeReaders)
	b.applyFile("testdata/stores.yaml", "TOKEN", store.Token(), "ADDRESS", store.Address())
	// A store that is not ready is looked at again after a while only, and so is what reads it.
	for resource, name := range map[string]string{"secretstores": "bao", "clustersecretstores": b.namespace} {
		testkit.Await(b.T, "one of the "+resource+" is ready", func(ctx context.Context) bool { return b.isReady(ctx, resource, name) })
	}
	b.applyFile("testdata/readers.yaml")
	for _, secret := range []string{"plain", "fanned-out"} {
		testkit.Await(b.T, "the Secret "+secret+" is there", func(ctx context.Context) bool {
			value, ok := b.value(ctx, secret)
			return ok && value == "one"
		})
	}
	config := b.file("stores.yaml", fmt.Sprintf(`stores:
- name: bao
  address: %s
  auth: {tokenFile: %s}
  poll: {interval: 1s, referenced: true}
`, store.Address(), b.file("store-token", store.Token()+"\n")))
	b.args[rights.WatcherAccount] = []string{
		"--namespaces", b.namespace, "--sources", "secret,configmap,externalsecret,certificate", "--openbao-config", config,
	}
	b.args[rights.ActuatorAccount] = []string{"--force-sync"}
}

// removeReaders removes the ExternalSecrets, which the operator would sync in vain without the store.
func (b *bench) removeReaders() {
	ctx := context.WithoutCancel(b.Context())
	for _, resource := range []string{"clusterexternalsecrets", "externalsecrets", "clustersecretstores", "secretstores"} {
		one := metav1.ListOptions{FieldSelector: "metadata.name=" + b.namespace}
		if !strings.HasPrefix(resource, "cluster") {
			one = metav1.ListOptions{}
		}
		if err := b.external(resource).DeleteCollection(ctx, metav1.DeleteOptions{}, one); err != nil {
			b.Error(err)
		}
	}
}

// external are the objects of External Secrets of a kind, in the namespace where the kind has any.
func (b *bench) external(resource string) dynamic.ResourceInterface {
	objects := b.custom.Resource(schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: resource})
	if strings.HasPrefix(resource, "cluster") {
		return objects
	}
	return objects.Namespace(b.namespace)
}

// applyFile applies a file for the namespace, with further texts in it replaced.
func (b *bench) applyFile(path string, replaced ...string) {
	b.Helper()
	content := testkit.ReadFile(b.T, path)
	values := strings.NewReplacer(append(replaced, "NAMESPACE", b.namespace)...)
	apply(b.T, values.Replace(content))
}

// isReady reports whether External Secrets considers a store ready.
func (b *bench) isReady(ctx context.Context, resource, name string) bool {
	store, err := b.external(resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(store.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && fields["type"] == "Ready" && fields["status"] == "True"
	})
}

// storePath returns the path of a bench's own secret in the store.
func (b *bench) storePath(name string) events.StorePath {
	return events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: b.namespace + "/" + name}
}

// value is what External Secrets has read into a Secret.
func (b *bench) value(ctx context.Context, secret string) (value string, ok bool) {
	got, err := b.kube.CoreV1().Secrets(b.namespace).Get(ctx, secret, metav1.GetOptions{})
	if err != nil {
		return "", false
	}
	return string(got.Data["password"]), true
}
