package sources

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

// everyKind are the options of a watcher of all kinds, with one worker, so that the order is known.
func (b *bench) everyKind() Options {
	options := b.options()
	options.Kinds, options.Workers, options.LookAgain = kinds.Names(), 1, 10*time.Millisecond
	return options
}

// externalSecretOf is an ExternalSecret that writes the Secret of its name, with a condition Ready.
func externalSecretOf(t testing.TB, name string, version int, ready, synced string, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	resource := customOf(t, `{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
		"metadata": {"namespace": "shop", "name": "`+name+`", "uid": "es", "resourceVersion": "`+strconv.Itoa(version)+`"},
		"status": {"syncedResourceVersion": "`+synced+`", "refreshTime": "2026-03-14T15:09:26Z",
			"conditions": [{"type": "Ready", "status": "`+ready+`", "reason": "R`+ready+`", "message": "`+canary+`"}]}}`)
	resource.SetAnnotations(annotations)
	return resource
}

func (b *bench) put(resource *unstructured.Unstructured) {
	b.Helper()
	client := b.dynamic.Resource(resourceOf(b, events.KindExternalSecret)).Namespace(resource.GetNamespace())
	_, err := client.Create(b.Context(), resource, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.Update(b.Context(), resource, metav1.UpdateOptions{})
	}
	testkit.Must(b, err)
}

func (b *bench) take(resource *unstructured.Unstructured) {
	b.Helper()
	err := b.dynamic.Resource(resourceOf(b, events.KindExternalSecret)).Namespace(resource.GetNamespace()).Delete(b.Context(), resource.GetName(), metav1.DeleteOptions{})
	testkit.Must(b, err)
}

// uninstall makes the API server not serve ExternalSecrets until install is called. asked counts the requests for them.
func (b *bench) uninstall() (asked *atomic.Int64, install func()) {
	var installed atomic.Bool
	asked = &atomic.Int64{}
	b.dynamic.PrependReactor("list", "externalsecrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		if installed.Load() {
			return false, nil, nil
		}
		asked.Add(1)
		return true, nil, apierrors.NewNotFound(resourceOf(b, events.KindExternalSecret).GroupResource(), "")
	})
	return asked, func() { installed.Store(true) }
}

func TestAKindThatIsNotInstalledHoldsUpNothing(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	asked, install := b.uninstall()
	stop := b.ready(b.everyKind())
	want := []string{"secret/db observed u1/1 {a b} []"}
	b.want(want...)
	b.eventually("it is looked for again", func() bool { return asked.Load() > 5 })
	const said = "kind of sources not installed; waiting for it"
	if times := strings.Count(b.log.String(), said); times != 1 {
		t.Errorf("it is said %d times that it is not installed, want once", times)
	}

	b.put(externalSecretOf(t, "db", 2, "True", "1-a", nil))
	install()
	want = append(want, "externalsecret/db observed es/2 1-a of db: RTrue")
	b.want(want...)
	b.put(externalSecretOf(t, "db", 3, "True", "1-b", nil))
	want = append(want, "externalsecret/db synced es/3@3 1-b of db: RTrue previous")
	b.want(want...)
	stop()

	// A source that the stream knows does not count as deleted while its kind is not installed, only once it is.
	asked, install = b.uninstall()
	b.take(externalSecretOf(t, "db", 3, "True", "1-b", nil))
	stop = b.ready(b.everyKind())
	b.eventually("it is looked for again", func() bool { return asked.Load() > 5 })
	b.want(want...)
	install()
	want = append(want, "externalsecret/db deleted es/3@3 {} []")
	b.want(want...)
	stop()
}

func TestChangesAreNotPublishedBeforeItIsKnownWhoWritesWhat(t *testing.T) {
	const rotation = "bao/root/secret/shop/db/7"
	b := newBench(t, secretOf("shop", "db", "u", "1", "one"))
	b.put(externalSecretOf(t, "db", 2, "True", "1-a", nil))
	b.ready(b.everyKind())()
	b.eventually("both are observed", func() bool { return len(b.changes()) == 2 })
	b.put(externalSecretOf(t, "db", 3, "True", "1-a", map[string]string{"keyturn.dev/cause": rotation}))
	b.update(secretOf("shop", "db", "u", "4", "two"))

	// The API server is slow to answer the one list.
	listed := make(chan struct{})
	b.dynamic.PrependReactor("list", "externalsecrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		<-listed
		return false, nil, nil
	})
	b.client.ClearActions()
	_, stop := b.start(b.everyKind())
	defer stop()
	polls := 0
	b.eventually("the Secrets have been watched for a while", func() bool {
		if slices.ContainsFunc(b.client.Actions(), func(a k8stesting.Action) bool { return a.Matches("watch", "secrets") }) {
			polls++
		}
		return polls > 20
	})
	close(listed)
	b.eventually("the change is published", func() bool { return len(b.changes()) == 3 })
	testkit.WantEqual(t, "cause", &events.Cause{Source: "externalsecret/db", Event: rotation}, b.changes()[2].Cause)
}
