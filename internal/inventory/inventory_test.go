package inventory

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAnInventoryIsReadyWhenEverythingIsListed(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{events.AnnotationHold: "moving"}}}
	for name, reads := range map[string]bool{"with what namespaces say": true, "without that": false} {
		t.Run(name, func(t *testing.T) {
			changed := make(chan workload.Key, 10)
			i := New(Options{
				Clients: workload.Clients{Typed: fake.NewClientset(webDeployment("10", rollOn("auto")), namespace)},
				Kinds:   workload.Kinds{deployments}, ReadNamespaces: reads,
				Changes: heard{func(key workload.Key) { changed <- key }, unlinked}, Met: func(*workload.Workload) {},
				Log: slog.New(slog.DiscardHandler), Now: time.Now,
			})
			i.Lists.Expect("something else")
			denied := errors.New("no permission")
			i.Lists.Deny("something else", denied)
			testkit.Run(t, "inventory", func(ctx context.Context) error { i.Run(ctx); return nil })
			key := workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}
			if got := <-changed; got != key || i.Index.Get(key) == nil {
				t.Errorf("%v has changed, want %v, which is known", got, key)
			}
			if err := i.Lists.Ready(); !errors.Is(err, denied) {
				t.Errorf("before everything is listed, it is ready: %v", err)
			}
			i.Lists.Listed("something else")
			if !i.Wait(t.Context()) || i.Lists.Ready() != nil {
				t.Errorf("when everything is listed, it is not ready: %v", i.Lists.Ready())
			}
			if held := !i.Namespaces.Get("shop").Same(workload.Namespace{}); held != reads {
				t.Errorf("the hold of the namespace is known: %t, want %t", held, reads)
			}
		})
	}
}
