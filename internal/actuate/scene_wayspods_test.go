//go:build !race

package actuate_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/workload"
)

// What a pod does when it is asked to reload, if it does not answer with a status.
const (
	// refusing pods do not listen, and silent ones do not answer.
	refusing = 0
	silent   = -1
)

// askedPods are the pods of Deployments that may be asked to reload: each has one, and goes by the name of the Deployment.
type askedPods struct {
	s *scene

	mu sync.Mutex
	// names has them by address.
	names map[string]string
	// answers are statuses, or one of the constants above. changed is closed when one changes.
	answers map[string]int
	changed chan struct{}
	// asked counts the requests, and asking those that wait for an answer.
	asked, asking map[string]int
}

// askPods lets the next actuators ask pods to reload.
func (s *scene) askPods() *askedPods {
	p := &askedPods{
		s: s, names: make(map[string]string), answers: make(map[string]int), changed: make(chan struct{}),
		asked: make(map[string]int), asking: make(map[string]int),
	}
	s.options.ReloadInPlace, s.options.DialPod = 2*time.Minute, p.dial
	return p
}

// beginInPlace lets pods be asked to reload after a delay, and begins with that of web.
func (s *scene) beginInPlace(delay time.Duration) *askedPods {
	s.Helper()
	pods := s.askPods()
	s.options.ReloadInPlace = delay
	pods.of("web")
	s.begin("secret/db")
	return pods
}

// of makes a Deployment whose pod reads secret/db as files, and says where it is asked to reload. At first, it answers that it does.
func (p *askedPods) of(name string, aspects ...aspect) {
	p.s.Helper()
	id := parse(name)
	p.s.workload(name, append([]aspect{auto, mountsSecret("db"), annotated(workload.AnnotationReload, "http://:9090/-/reload")}, aspects...)...)
	p.s.alter(name, func(d *appsv1.Deployment) {
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": id.name}}
	})
	p.answer(name, http.StatusOK)
	address := fmt.Sprintf("10.0.0.%d", len(p.names)+1)
	p.names[address] = name
	p.s.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: id.namespace, Name: id.name + "-1", Labels: map[string]string{"app": id.name, appsv1.DefaultDeploymentUniqueLabelKey: "1"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: id.name + "-1", UID: "rs", Controller: new(true),
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	})
}

// answer says what the pod of a Deployment does from now on, with the requests that wait for an answer, too.
func (p *askedPods) answer(name string, with int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[name] = with
	close(p.changed)
	p.changed = make(chan struct{})
}

// wantAsked wants the pod of a Deployment to have been asked so often.
func (p *askedPods) wantAsked(name string, times int) {
	p.s.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.asked[name]; got != times {
		p.s.Errorf("after %s, the pod of %s was asked %d times, want %d", p.s.elapsed(), name, got, times)
	}
}

// wantAsking wants so many pods of a namespace to be asked right now.
func (p *askedPods) wantAsking(namespace string, want int) {
	p.s.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := 0
	for name, asking := range p.asking {
		if parse(name).namespace == namespace {
			got += asking
		}
	}
	if got != want {
		p.s.Errorf("after %s, %d pods of %s are being asked, want %d", p.s.elapsed(), got, namespace, want)
	}
}

// dial connects to a pod.
func (p *askedPods) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.names[host]
	if p.answers[name] == refusing {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	client, server := net.Pipe()
	go p.serve(name, server)
	return client, nil
}

// serve answers one request, which the client ends by closing the connection.
func (p *askedPods) serve(name string, connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 4096)
	if _, err := connection.Read(buffer); err != nil {
		return
	}
	p.count(name, 1, 1)
	defer p.count(name, 0, -1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = connection.Read(buffer) // Nothing more comes.
	}()
	for {
		p.mu.Lock()
		status, changed := p.answers[name], p.changed
		p.mu.Unlock()
		if status > 0 {
			_, _ = fmt.Fprintf(connection, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", status, http.StatusText(status))
			return
		}
		select {
		case <-changed:
		case <-gone:
			return
		}
	}
}

func (p *askedPods) count(name string, asked, asking int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[name] += asked
	p.asking[name] += asking
}

// unready says that the pod of a Deployment is not ready.
func (p *askedPods) unready(name string) {
	p.s.Helper()
	id := parse(name)
	p.s.rewrite(corev1.SchemeGroupVersion.WithResource("pods"), id.namespace, id.name+"-1", "status", func(object runtime.Object) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			p.s.Fatalf("it is a %T", object)
		}
		pod.Status.Conditions = nil
	})
}
