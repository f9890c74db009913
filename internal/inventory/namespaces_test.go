package inventory

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// authorizer refuses a number of requests for namespaces.
type authorizer struct{ refuses atomic.Int32 }

// heldNamespace returns an API server with one namespace, which is on hold, and the authorizer that refuses requests with the verbs.
func heldNamespace(verbs ...string) (*fake.Clientset, *authorizer) {
	client, a := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Annotations: map[string]string{events.AnnotationHold: "moving"},
	}}), &authorizer{}
	for _, verb := range verbs {
		client.PrependReactor(verb, "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
			if a.refuses.Add(-1) < 0 {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil)
		})
	}
	return client, a
}

func TestARefusalToReadNamespacesCountsOnceItWasRepeated(t *testing.T) {
	tests := []struct {
		name     string
		refusals int32
		holds    bool
	}{{"two", 2, true}, {"three", 3, false}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, a := heldNamespace("list")
				a.refuses.Store(tt.refusals)
				lists := kube.NewFirstLists()
				lists.Expect(namespaceScope(metav1.NamespaceAll))
				n := newNamespaces(client, slog.New(slog.DiscardHandler), lists, indexOf())
				began := time.Now()
				go n.run(t.Context(), metav1.NamespaceAll)
				<-lists.Done()
				if holds := !n.Get("shop").Same(workload.Namespace{}); holds != tt.holds {
					t.Errorf("the first answer is that the namespace holds: %t, want %t", holds, tt.holds)
				}
				if waited := time.Since(began); waited > 10*time.Second {
					t.Errorf("readiness waited for %s", waited)
				}
			})
		})
	}
}

func TestWhenThePermissionEndsWhatNamespacesSaidStaysAndTheLogSaysSoEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		client, a := heldNamespace("get", "list")
		n := newNamespaces(client, slog.New(slog.NewTextHandler(&log, nil)), kube.NewFirstLists(), indexOf())
		go n.run(t.Context(), "shop")
		for lost := 1; lost <= 2; lost++ {
			a.refuses.Store(0)
			<-time.After(2 * namespaceAgain)
			if n.Get("shop").Same(workload.Namespace{}) {
				t.Fatal("the namespace does not hold")
			}
			a.refuses.Store(1 << 20)
			<-time.After(10 * namespaceAgain)
			synctest.Wait()
			if n.Get("shop").Same(workload.Namespace{}) {
				t.Error("the hold ended with the permission")
			}
			if got := strings.Count(log.String(), "except those read before"); got != lost || strings.Count(log.String(), "kept=1") != lost {
				t.Errorf("lost %d times, it is said %d times:\n%s", lost, got, log.String())
			}
		}
	})
}
