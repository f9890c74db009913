package actuate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// racedServer is an API server with Deployments that read the Secret db. Their rollouts are complete at once, and every fifth patch fails.
type racedServer struct {
	*fake.Clientset

	mu               sync.Mutex
	version, patches int
}

func newRacedServer(t *testing.T, namespaces ...string) *racedServer {
	t.Helper()
	s := &racedServer{Clientset: fake.NewClientset(), version: 1000}
	s.PrependReactor("patch", "deployments", s.patch)
	s.PrependReactor("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	for _, namespace := range namespaces {
		for i := range 8 {
			name := fmt.Sprintf("web-%d", i)
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), ResourceVersion: s.next(),
				Annotations: map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/wave": strconv.Itoa(i % 3)},
			}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", EnvFrom: []corev1.EnvFromSource{{
				SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}},
			}}}}
			d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
			testkit.Must(t, s.Tracker().Add(d))
		}
	}
	return s
}

// next returns the next resourceVersion.
func (s *racedServer) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return strconv.Itoa(s.version)
}

// patch answers a patch.
func (s *racedServer) patch(action k8stesting.Action) (bool, runtime.Object, error) {
	request, ok := action.(k8stesting.PatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	version := s.next()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.patches++; s.patches%5 == 0 {
		return true, nil, errors.New("connection reset")
	}
	before, err := s.Tracker().Get(request.GetResource(), request.GetNamespace(), request.GetName())
	if err != nil {
		return true, nil, err
	}
	object, err := patched(before, request.GetPatch())
	if err != nil {
		return true, nil, kube.NotApplied()
	}
	was, isDeployment := before.(*appsv1.Deployment)
	after, stillIs := object.(*appsv1.Deployment)
	if !isDeployment || !stillIs {
		return true, nil, fmt.Errorf("it is a %T", before)
	}
	if !equality.Semantic.DeepEqual(was.Spec.Template, after.Spec.Template) {
		after.Generation++
		after.Status.ObservedGeneration = after.Generation
	}
	after.ResourceVersion = version
	return true, after, s.Tracker().Update(request.GetResource(), after, request.GetNamespace())
}

// patched returns what a JSON patch makes of an object.
func patched(object runtime.Object, body []byte) (runtime.Object, error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if content, err = patch.Apply(content); err != nil {
		return nil, err
	}
	after := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	return after, json.Unmarshal(content, after)
}

// The scenes take too long with the race detector. This is what it sees of a whole actuator: one after the other leads, and rolls many workloads,
// while both are measured and traced.
func TestActuatorsThatTakeTurnsHaveNoDataRace(t *testing.T) {
	testkit.Slow(t)
	namespaces := []string{"shop", "bank"}
	server, log := newRacedServer(t, namespaces...), &testkit.Log{}
	buses := natstest.Buses(t, "demo", "demo", "demo")
	var readers []*sdkmetric.ManualReader
	start := func(identity string, b *bus.Bus) (stop func()) {
		t.Helper()
		reader, options := sdkmetric.NewManualReader(), actuate.DefaultOptions()
		readers = append(readers, reader)
		options.Cluster, options.Client, options.Identity, options.Settle = "demo", server, identity, 10*time.Millisecond
		options.Logger, options.Reloader.Metrics = log.Logger(), true
		options.Tracer = sdktrace.NewTracerProvider().Tracer("")
		options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
		a, err := actuate.New(options)
		testkit.Must(t, err)
		return testkit.Run(t, "actuator "+identity, func(ctx context.Context) error { return a.Run(ctx, b) })
	}
	last := make(map[string]uint64)
	printOf := func(i int) string { return fmt.Sprintf("k0a1b2c3d:%032x", i) }
	change := func(i int) {
		t.Helper()
		for _, namespace := range namespaces {
			version, now := server.next(), time.Now()
			changed := events.Change{
				Cluster: "demo", Source: events.Source{Kind: events.KindSecret, Namespace: namespace, Name: "db"}, Verb: events.VerbChanged,
				UID: "uid-" + namespace, ResourceVersion: version, ChangedAt: version, Fingerprint: printOf(i), Previous: printOf(i - 1),
				Changed: []string{"password"}, Keys: map[string]events.Key{"password": {Fingerprint: printOf(i), ChangedAt: version}},
				Time: now, WrittenAt: now,
			}
			var seq uint64
			natstest.Publish(t, func() (err error) {
				seq, err = buses[2].PublishChange(t.Context(), changed, last[namespace])
				return err
			})
			last[namespace] = seq
		}
	}
	rolled := func(i int) {
		t.Helper()
		testkit.Await(t, fmt.Sprintf("all workloads have change %d", i), func(ctx context.Context) bool {
			for _, reader := range readers {
				_ = reader.Collect(ctx, new(metricdata.ResourceMetrics)) // What fails here is not what this is about.
			}
			list, err := server.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false
			}
			for n := range list.Items {
				if !strings.Contains(list.Items[n].Annotations["keyturn.dev/rolled"], printOf(i)) {
					return false
				}
			}
			return true
		}, log.String)
	}

	stopFirst := start("first", buses[0])
	stopSecond := start("second", buses[1])
	change(1)
	rolled(1)
	change(2)
	stopFirst()
	change(3)
	rolled(3)
	stopSecond()
}
