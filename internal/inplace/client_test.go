package inplace

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var refreshed = time.Date(2026, 3, 14, 15, 11, 26, 0, time.UTC)

// podOf returns a pod of the ReplicaSet web-1, which runs and is older than the change.
func podOf(name, ip string, mutate func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web", "pod-template-hash": "1"},
			CreationTimestamp: metav1.NewTime(refreshed.Add(-time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs", Controller: new(true)}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip, HostIP: "192.168.0.9",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	if mutate != nil {
		mutate(p)
	}
	return p
}

// network is what pods answer, by address.
type network struct {
	mu     sync.Mutex
	called []string
	answer func(address string, w http.ResponseWriter, r *http.Request)
}

// clientOf returns a Client for a cluster with pods, whose network is served here. It hardly waits between attempts.
func clientOf(t *testing.T, n *network, spans *tracetest.SpanRecorder, pods ...runtime.Object) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.called = append(n.called, r.Method+" "+r.Host+r.URL.Path)
		n.mu.Unlock()
		n.answer(r.Host, w, r)
	}))
	t.Cleanup(server.Close)
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	c := New(fake.NewClientset(pods...), tracer, func(ctx context.Context, _, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "10.0.0.99:") {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	})
	c.backoff = wait.Backoff{Duration: time.Millisecond, Steps: 2}
	return c
}

func (n *network) calls() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(slices.Values(n.called))
}

func webPods() Pods {
	return Pods{
		Namespace: "shop", Selector: "app=web", Deployment: "web", Port: 9090, Path: "/-/reload", Refreshed: refreshed,
		Begin: func() error { return nil },
	}
}

func accept(_ string, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func TestThePodsThatMayHaveReadTheFilesAreTold(t *testing.T) {
	n := &network{answer: accept}
	c := clientOf(t, n, tracetest.NewSpanRecorder(),
		podOf("web-a", "10.0.0.1", nil),
		podOf("not-ready", "10.0.0.2", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }),
		podOf("of-six", "fd00::1", nil),
		podOf("of-another-deployment", "10.0.0.3", func(p *corev1.Pod) { p.Labels["app"] = "api" }),
		podOf("of-nobody", "10.0.0.3", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		podOf("of-web-canary", "10.0.0.3", func(p *corev1.Pod) {
			p.Labels["pod-template-hash"], p.OwnerReferences[0].Name = "abc", "web-canary-abc"
		}),
		podOf("without-a-node", "10.0.0.3", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		podOf("not-all-started", "10.0.0.5", func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodPending, "node" }),
		podOf("ending", "10.0.0.3", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(refreshed)), []string{"x/y"}
		}),
		podOf("new", "10.0.0.3", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(refreshed.Add(time.Minute)) }),
		podOf("of-a-set", "10.0.0.4", func(p *corev1.Pod) { p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID = "StatefulSet", "set" }),
	)
	told, err := c.Reload(t.Context(), webPods())
	if told != 4 || err != nil {
		t.Errorf("told %d, %v", told, err)
	}
	want := []string{"POST 10.0.0.1:9090/-/reload", "POST 10.0.0.2:9090/-/reload", "POST 10.0.0.5:9090/-/reload", "POST [fd00::1]:9090/-/reload"}
	if got := n.calls(); !slices.Equal(got, want) {
		t.Errorf("called were %q, want %q", got, want)
	}

	ofSet := webPods()
	ofSet.Controller = "set"
	if told, err := c.Reload(t.Context(), ofSet); told != 1 || err != nil {
		t.Errorf("of the StatefulSet are told %d, %v", told, err)
	}
}

func TestAPodIsToldAtItsOwnAddressOnly(t *testing.T) {
	for name, mutate := range map[string]func(*corev1.Pod){
		"this process":       func(p *corev1.Pod) { p.Status.PodIP = "127.0.0.1" },
		"a metadata service": func(p *corev1.Pod) { p.Status.PodIP = "169.254.169.254" },
		"the node's":         func(p *corev1.Pod) { p.Status.PodIP = p.Status.HostIP },
		"the node's, in six": func(p *corev1.Pod) { p.Status.PodIP = "::ffff:" + p.Status.HostIP },
		"the node's second":  func(p *corev1.Pod) { p.Status.PodIP, p.Status.HostIPs = "fd00::9", []corev1.HostIP{{IP: "fd00:0::9"}} },
		"the one of AWS":     func(p *corev1.Pod) { p.Status.PodIP = "fd00:ec2::254" },
		"the node's network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{answer: accept}
			c := clientOf(t, n, tracetest.NewSpanRecorder(), podOf("web-a", "10.0.0.1", mutate))
			if _, err := c.Reload(t.Context(), webPods()); !errors.Is(err, errAddress) {
				t.Errorf("the error is %v", err)
			}
			if got := n.calls(); len(got) > 0 {
				t.Errorf("called were %q", got)
			}
		})
	}
}

func TestAPodThatEndsMeanwhileNeedNotBeTold(t *testing.T) {
	n := &network{}
	var c *Client
	n.answer = func(_ string, w http.ResponseWriter, r *http.Request) {
		// An error means that the pod is already gone.
		_ = c.client.CoreV1().Pods("shop").Delete(r.Context(), "web-a", metav1.DeleteOptions{})
		w.WriteHeader(http.StatusBadGateway)
	}
	c = clientOf(t, n, tracetest.NewSpanRecorder(), podOf("web-a", "10.0.0.1", nil))
	if _, err := c.Reload(t.Context(), webPods()); err != nil {
		t.Error(err)
	}
}

func TestAPodThatIsNotReadyIsToldFirstAndMayBeToldLater(t *testing.T) {
	for name, mutate := range map[string]func(*corev1.Pod){
		"it does not listen":    func(p *corev1.Pod) { p.Status.Conditions = nil },
		"it has no address yet": func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} },
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{answer: accept}
			starting := podOf("web-b", "10.0.0.99", mutate)
			starting.Spec.NodeName = "node"
			c := clientOf(t, n, tracetest.NewSpanRecorder(), podOf("web-a", "10.0.0.1", nil), starting)
			if _, err := c.Reload(t.Context(), webPods()); !errors.Is(err, ErrStarting) || !strings.HasPrefix(err.Error(), "pod web-b: ") {
				t.Errorf("the error is %v", err)
			}
			if got := n.calls(); len(got) > 0 {
				t.Errorf("called were %q, which are going to be called again", got)
			}
		})
	}
}

func TestWhatTheAPIServerMayAnswerLaterIsNoAnswer(t *testing.T) {
	for later, answer := range map[bool]error{true: errors.New("connection refused"), false: apierrors.NewForbidden(corev1.Resource("pods"), "", nil)} {
		client := fake.NewClientset()
		client.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
		c := New(client, noop.NewTracerProvider().Tracer(""), nil)
		if _, err := c.Reload(t.Context(), webPods()); err == nil || errors.Is(err, ErrNotListed) != later {
			t.Errorf("the error is %v", err)
		}
	}
}

// A Deployment that is created again under another name adopts the ReplicaSet of the one that was deleted without its pods.
func TestPodsThatMayHaveBeenAdoptedAreNotTakenForTold(t *testing.T) {
	adopted := func(p *corev1.Pod) { p.OwnerReferences[0].Name = "shop-1" }
	for name, tt := range map[string]struct {
		pods []runtime.Object
		told int
		want error
	}{
		"all may have been":              {[]runtime.Object{podOf("a", "10.0.0.1", adopted), podOf("b", "10.0.0.2", adopted)}, 0, errOthers},
		"those of its own name are told": {[]runtime.Object{podOf("a", "10.0.0.1", adopted), podOf("b", "10.0.0.2", nil)}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := clientOf(t, &network{answer: accept}, tracetest.NewSpanRecorder(), tt.pods...)
			if told, err := c.Reload(t.Context(), webPods()); told != tt.told || !errors.Is(err, tt.want) {
				t.Errorf("told %d, %v; want %d, %v", told, err, tt.told, tt.want)
			}
		})
	}
}
