package sources

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
)

// classWith is the SecretProviderClass db with annotations.
func classWith(t testing.TB, version int, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	resource := customOf(t, `{"apiVersion": "secrets-store.csi.x-k8s.io/v1", "kind": "SecretProviderClass",
		"metadata": {"namespace": "shop", "name": "db", "uid": "c", "resourceVersion": "`+strconv.Itoa(version)+`", "labels": {"team": "a"}},
		"spec": {"provider": "vault", "parameters": {"objects": "`+canary+`"}}}`)
	resource.SetAnnotations(annotations)
	return resource
}

func TestWatcherPublishesWhatIsMounted(t *testing.T) {
	b, class := newBench(t), events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "db"}
	pod := func(name, version string, generation, resourceVersion int) *unstructured.Unstructured {
		status := customOf(t, `{"apiVersion": "secrets-store.csi.x-k8s.io/v1", "kind": "SecretProviderClassPodStatus",
			"metadata": {"namespace": "shop", "name": "`+name+`-shop-db", "uid": "s-`+name+`", "resourceVersion": "`+strconv.Itoa(resourceVersion)+`",
				"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "`+name+`", "uid": "p-`+name+`"}]},
			"status": {"secretProviderClassName": "db", "mounted": true, "objects": [{"id": "a", "version": "`+canary+version+`"}]}}`)
		status.SetGeneration(int64(generation))
		return status
	}
	options := b.everyKind()
	// The driver does not give the label of a class to the statuses of its pods.
	options.Selector = "team=a"
	b.put(classWith(t, 1, nil))
	b.put(pod("a", "1", 1, 2))
	b.put(pod("b", "1", 1, 3))
	w, stop := b.startReady(options)
	want := []string{"secretproviderclass/db observed c/2 {} [] truncated"}
	b.want(want...)
	b.put(pod("a", "2", 2, 4))
	want = append(want, "secretproviderclass/db changed c/4@4 {} [] truncated previous")
	b.want(want...)
	b.put(pod("b", "2", 2, 5))
	b.put(pod("c", "3", 1, 6))
	b.put(classWith(t, 7, map[string]string{"keyturn.dev/ignore": "true", "reloader.stakater.com/match": "true"}))
	// Classes and the statuses of pods are watched separately.
	b.eventually("the annotations are seen", func() bool { return w.informers.cached.Lookup(class).ResourceVersion == "7" })
	// What comes back is news only to a watcher that knows that the other content is on the stream.
	b.eventually("the change is noted", func() bool { return w.ledger.get(class).ResourceVersion == "4" })
	<-w.pending.quiet()
	b.put(pod("a", "1", 3, 8)) // back
	want = append(want, "secretproviderclass/db changed c/8@8 {} [] truncated previous ignore match")
	b.want(want...)
	if last := b.changes()[2]; !last.Ignore || !last.Match {
		t.Errorf("the annotations of the class do not count: %+v", last)
	}
	stop()

	// What happens while the watcher is down is found once it is up again.
	b.put(pod("d", "4", 1, 9))
	b.put(pod("b", "5", 3, 10))
	stop = b.ready(options)
	want = append(want, "secretproviderclass/db changed c/10@10 {} [] truncated previous ignore match")
	b.want(want...)
	stop()
	b.ready(options)()
	b.want(want...)
	b.take(classWith(t, 7, nil))
	options.Selector = "" // With a selector, the class might still exist without the label.
	b.ready(options)()
	b.want(append(want, "secretproviderclass/db deleted c/10@10 {} [] truncated")...)
}
