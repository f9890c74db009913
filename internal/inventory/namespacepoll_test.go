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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
)

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
				n := newNamespaces(client, slog.New(slog.DiscardHandler), func(string) {}, func(string) {})
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
		ready := make(chan struct{}, 100)
		n := newNamespaces(client, slog.New(slog.NewTextHandler(&log, nil)), func(string) { ready <- struct{}{} }, func(string) {})
		down.Store(true)
		go n.run(t.Context(), "shop")
		for outage := 1; outage <= 2; outage++ {
			<-time.After(time.Minute)
			synctest.Wait()
			if got := strings.Count(log.String(), "no quorum"); got != outage {
				t.Errorf("after %d outages it is logged %d times:\n%s", outage, got, log.String())
			}
			down.Store(false)
			<-ready
			<-time.After(time.Minute)
			down.Store(true)
		}
	})
}
