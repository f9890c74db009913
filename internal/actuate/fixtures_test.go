package actuate

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

var (
	db      = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	written = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
)

// fp returns a fingerprint that differs with the letter.
func fp(letter string) string {
	const digits = "0000000000000000000000000000000"
	return "k0a1b2c3d:" + digits + letter
}

// changeOf returns a change of the Secret db at resourceVersion 100: its key password, which has changed before, changed, and its
// key user did not.
func changeOf(mutate func(*events.Change)) events.Change {
	change := events.Change{
		Cluster: "demo", Source: db, Verb: events.VerbChanged, UID: "uid", ResourceVersion: "100", ChangedAt: "100",
		Fingerprint: fp("b"), Previous: fp("a"), Changed: []string{"password"}, WrittenAt: written,
		Keys: map[string]events.Key{
			"password": {Fingerprint: fp("2"), ChangedAt: "100"},
			"user":     {Fingerprint: fp("3")},
		},
	}
	if mutate != nil {
		mutate(&change)
	}
	return change
}

// eventOf returns an event that was delivered.
func eventOf(change events.Change) *inFlightEvent {
	return &inFlightEvent{delivery: &events.Delivery{Change: change}, span: trace.SpanFromContext(context.Background())}
}

// deployments is the kind that the tests use.
var deployments, _ = workload.BuiltIn().Named("deployment")

// The annotations that tests read and write.
const (
	annotationRolled   = "keyturn.dev/rolled"
	annotationRevision = "keyturn.dev/revision"
)

func rollOn(text string) map[string]string { return map[string]string{workload.AnnotationRollOn: text} }

// deploymentOf returns a Deployment that reads all of a Secret.
func deploymentOf(name, secret string, annotations map[string]string) *appsv1.Deployment {
	from := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Annotations: maps.Clone(annotations),
		},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", EnvFrom: []corev1.EnvFromSource{from}}},
		}}},
	}
}

// recordOf returns the record in an annotation, as a workload that has it is read.
func recordOf(annotation string) map[string]workload.RolledFor {
	w, _ := workload.Read(deployments, deploymentOf("web", "db", map[string]string{annotationRolled: annotation}), workload.Reading{})
	return w.Rolled
}

// testOptions returns the options of an actuator that talks to nobody. The time is that of the tests' events.
func testOptions() Options {
	options := DefaultOptions()
	options.Cluster, options.Client = "demo", fake.NewClientset()
	options.Logger = slog.New(slog.DiscardHandler)
	options.Tracer, options.Meter = tracenoop.NewTracerProvider().Tracer(""), metricnoop.NewMeterProvider().Meter("")
	options.Now = func() time.Time { return written }
	return options
}

// unwritten returns the Kubernetes Events of an actuator. Nothing writes them.
func unwritten(a *Actuator) *kubeEvents {
	return newKubeEvents(a.options, a.kinds, a.log, a.metrics.dropEvent)
}

// patched returns what an API server makes of an object and a JSON patch of it. A patch that does not apply is answered as the API server does.
func patched(object runtime.Object, action k8stesting.Action) (runtime.Object, error) {
	tracker := k8stesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	if err := tracker.Add(object); err != nil {
		return nil, err
	}
	_, after, err := k8stesting.ObjectReaction(tracker)(action)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return after, nil
}

// setIn returns the text that a JSON patch sets an annotation to, empty if it does not set it.
func setIn(body []byte, annotation string) string {
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(body, &operations); err != nil {
		return ""
	}
	for _, o := range operations {
		if text, ok := o.Value.(string); ok && o.Op == "add" && strings.HasSuffix(o.Path, "/"+strings.ReplaceAll(annotation, "/", "~1")) {
			return text
		}
	}
	return ""
}
