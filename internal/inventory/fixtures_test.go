package inventory

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	db      = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	written = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
)

var deployments, _ = workload.BuiltIn().Named("deployment")

// everyStore lets every namespace name every secret in a store.
var everyStore = workload.StoreAccess{Grants: []workload.StoreGrant{{Namespaces: []string{"*"}, Store: "*", Paths: []string{"*"}}}}

func rollOn(text string) map[string]string { return map[string]string{workload.AnnotationRollOn: text} }

// webDeployment returns a Deployment that rolls on db, at a resourceVersion.
func webDeployment(version string, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", ResourceVersion: version, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
		}}}}},
	}
}

// readAs reads an object that is a workload without problems.
func readAs(t *testing.T, k workload.Kind, object runtime.Object, reading workload.Reading) *workload.Workload {
	t.Helper()
	w, ok := workload.Read(k, object, reading)
	if !ok || len(w.Problems) > 0 {
		t.Fatalf("it cannot be read: %+v", w)
	}
	return w
}

// unlinked hears that a workload may have come to want other sources, and does nothing.
func unlinked(workload.Key) {}

// heard calls a function for each change.
type heard struct{ changed, relinked func(workload.Key) }

func (h heard) WorkloadChanged(key workload.Key)  { h.changed(key) }
func (h heard) WorkloadRelinked(key workload.Key) { h.relinked(key) }

// indexWith returns an index without workloads, which calls the functions.
func indexWith(reading workload.Reading, changed, relinked func(workload.Key)) *Index {
	return newIndex(Options{Reading: reading, Changes: heard{changed, relinked}, Met: func(*workload.Workload) {}})
}

// indexOf returns an index that knows the workloads.
func indexOf(workloads ...*workload.Workload) *Index {
	x := indexWith(workload.Reading{}, func(workload.Key) {}, unlinked)
	for _, w := range workloads {
		x.Listed(w, "")
	}
	return x
}
