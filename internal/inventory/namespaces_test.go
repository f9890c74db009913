package inventory

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
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
		scope    string
		refusals int32
		holds    bool
	}{
		{"one for all namespaces", metav1.NamespaceAll, 1, true},
		{"two for all namespaces", metav1.NamespaceAll, 2, true},
		{"three for all namespaces", metav1.NamespaceAll, 3, false},
		{"one for a namespace", "shop", 1, true},
		{"two for a namespace", "shop", 2, true},
		{"three for a namespace", "shop", 3, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				verbs := []string{"list"}
				if tt.scope != metav1.NamespaceAll {
					verbs = []string{"get"}
				}
				client, a := heldNamespace(verbs...)
				if tt.scope != metav1.NamespaceAll {
					client.PrependReactor("list", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
						return true, nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil)
					})
				}
				a.refuses.Store(tt.refusals)
				lists := kube.NewFirstLists()
				lists.Expect(namespaceScope(tt.scope))
				n := newNamespaces(client, slog.New(slog.DiscardHandler), lists, indexOf())
				began := time.Now()
				go n.run(t.Context(), tt.scope)
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

func TestWithoutPermissionToReadNamespacesNoReflectorLogsErrors(t *testing.T) {
	for _, scope := range []string{metav1.NamespaceAll, "shop"} {
		t.Run(namespaceScope(scope), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				handler := slog.NewTextHandler(&log, nil)
				client, a := heldNamespace("get", "list", "watch")
				a.refuses.Store(1 << 20)
				n := newNamespaces(client, slog.New(handler), kube.NewFirstLists(), indexOf())
				go n.run(logr.NewContext(t.Context(), logr.FromSlogHandler(handler)), scope) // A reflector logs where its context says.
				<-time.After(10 * namespaceAgain)
				synctest.Wait()
				if got := log.String(); strings.Contains(got, "ERROR") || strings.Count(got, "\n") != 1 {
					t.Errorf("want one warning and no error, got\n%s", got)
				}
				lists := 0
				for _, action := range client.Actions() {
					if list, ok := action.(k8stesting.ListActionImpl); ok {
						lists++
						if list.ListOptions.Limit != 1 {
							t.Error("a reflector lists what may not be listed, and may log that")
						}
					}
				}
				if lists < 10 {
					t.Errorf("it is tried %d times in ten minutes, want 10 at least", lists)
				}
			})
		})
	}
}

func TestANamespaceThatSaysNothingIsReadLessOften(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		least, most int
	}{
		{"on hold", map[string]string{events.AnnotationHold: "moving"}, 100, 121},
		{"says nothing", nil, 16, 21},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: tt.annotations}})
				n := newNamespaces(client, slog.New(slog.DiscardHandler), kube.NewFirstLists(), indexOf())
				go n.run(t.Context(), "shop")
				<-time.After(10 * time.Minute)
				synctest.Wait()
				if got := len(client.Actions()); got < tt.least || got > tt.most {
					t.Errorf("it is read %d times in ten minutes, want %d to %d", got, tt.least, tt.most)
				}
			})
		})
	}
}

func TestWhyANamespaceCannotBeReadIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var down atomic.Bool
		client := fake.NewClientset()
		client.PrependReactor("get", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, apierrors.NewInternalError(errors.New("no quorum"))
		})
		n := newNamespaces(client, slog.New(slog.NewTextHandler(&log, nil)), kube.NewFirstLists(), indexOf())
		down.Store(true)
		go n.run(t.Context(), "shop")
		for outage := 1; outage <= 2; outage++ {
			<-time.After(time.Minute)
			synctest.Wait()
			if got := strings.Count(log.String(), "no quorum"); got != outage {
				t.Errorf("after %d outages it is logged %d times:\n%s", outage, got, log.String())
			}
			down.Store(false)
			<-time.After(time.Minute)
			down.Store(true)
		}
	})
}
