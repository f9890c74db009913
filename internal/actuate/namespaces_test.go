package actuate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// annotatedNamespace sets the annotations of the namespace of the Deployments.
func (c *cluster) annotatedNamespace(annotations map[string]string) {
	c.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: c.next(), Annotations: annotations}}
	_, err := c.client.CoreV1().Namespaces().Update(c.Context(), namespace, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = c.client.CoreV1().Namespaces().Create(c.Context(), namespace, metav1.CreateOptions{})
	}
	if err != nil {
		c.Fatal(err)
	}
}

// forbid makes the API server refuse requests for namespaces.
func (c *cluster) forbid(verbs ...string) {
	for _, verb := range verbs {
		c.client.PrependReactor(verb, "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil)
		})
	}
}

func TestAHoldOnANamespaceHoldsItsWorkloadsUntilItIsTakenOff(t *testing.T) {
	tests := []struct {
		name      string
		forbidden []string
		named     []string
	}{
		{"where all may be watched", nil, nil},
		{"where it may only be read", []string{"list", "watch"}, []string{"shop"}},
		{"where it may only be watched", []string{"get"}, []string{"shop"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newStreamless(t, deploymentOf("web", "db", rollOn("auto")), deploymentOf("now", "db", map[string]string{
					workload.AnnotationRollOn: "auto", workload.AnnotationRollNow: "1",
				}))
				c.forbid(tt.forbidden...)
				c.annotatedNamespace(map[string]string{events.AnnotationHold: "moving"})
				options := c.options()
				options.Namespaces = tt.named
				b := c.lead(options)
				b.deliver(content("1"))
				b.isHeld("web", plan.OnHold, "somebody has put the workload on hold: namespace shop: moving")
				b.wantPatched("now")
				b.annotatedNamespace(nil)
				b.wantPatched("now", "web")
			})
		})
	}
}

func TestWithoutPermissionToReadNamespacesTheyHoldNothing(t *testing.T) {
	for name, named := range map[string][]string{"all": nil, "one": {"shop"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newStreamless(t, deploymentOf("web", "db", rollOn("auto")))
				c.forbid("get", "list", "watch")
				options := c.options()
				options.Namespaces = named
				b := c.lead(options)
				b.deliver(content("1"))
				b.wantPatched("web")
				if !strings.Contains(b.logged(), "no permission to read namespaces") {
					t.Error("nothing says so")
				}
			})
		})
	}
}

func TestTheWindowOfAWorkloadCountsRatherThanThatOfItsNamespace(t *testing.T) {
	const open, closed = "0 15 * * * for 1h", "0 3 * * * for 1h"
	tests := []struct {
		name      string
		namespace map[string]string
		own, flag string
		want      plan.Reason
		said      string
	}{
		{"that of the namespace counts", map[string]string{workload.AnnotationWindow: closed}, "", "", plan.WindowClosed, closed},
		{"and not that of the flag", map[string]string{workload.AnnotationWindow: open}, "", closed, plan.None, ""},
		{"but that of the workload", map[string]string{workload.AnnotationWindow: closed}, "always", closed, plan.None, ""},
		{"whatever it is", map[string]string{workload.AnnotationWindow: open}, closed, open, plan.WindowClosed, closed},
		{"one that is not valid is closed", map[string]string{workload.AnnotationWindow: "at night"}, "", "", plan.WindowClosed, "keyturn.dev/window of the namespace is not valid"},
		{"the flag counts where the namespace says nothing", nil, "", closed, plan.WindowClosed, closed},
		{"a hold holds in an open window, too", map[string]string{events.AnnotationHold: "moving"}, open, "", plan.OnHold, "namespace shop: moving"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now, options := time.Date(2026, 3, 14, 15, 30, 0, 0, time.UTC), testOptions()
			options.Window, options.Now = tt.flag, func() time.Time { return now }
			a, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := a.index.Read(deployments, webDeployment("50", map[string]string{workload.AnnotationRollOn: "auto", workload.AnnotationWindow: tt.own}))
			a.index.Listed(w, "")
			a.namespaces.Set(t.Context(), "shop", tt.namespace)
			l := newLoop(a.surroundings, unwritten(a))
			why := l.dispatcher.admission.timing.stop(w)
			if why.reason != tt.want || why.said != tt.said {
				t.Errorf("it waits for %q: %s; want %q: %s", why.reason, why.said, tt.want, tt.said)
			}
		})
	}
}
