package tests

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// A kubelet resolves the variable, and the control plane of the tests has none: what it resolves from is in the pod.
func TestAContainerCanReadTheTraceOfItsRollout(t *testing.T) {
	t.Parallel()
	received, endpoint := receiveOTLP(t)
	r := newRig(t, programs.Options{
		ActuatorArgs: []string{"--settle", "50ms"},
		Env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=100",
		},
	})
	const field = "metadata.annotations['keyturn.dev/traceparent']"
	r.secret("db", map[string]string{"password": "one"})
	web := r.reading("web", "db", 1, nil)
	container := &web.Spec.Template.Spec.Containers[0]
	container.Env = []corev1.EnvVar{{Name: "TRACEPARENT", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}}
	r.deploy(web)
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	completed := r.outcomeOf("web", events.VerbCompleted)
	r.eventually("the span of the rollout has arrived", func(context.Context) bool { return received.one(t, "rollout deployment") != nil })

	pods, err := r.client.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Annotations["keyturn.dev/revision"] != completed.Revision {
			continue
		}
		found = true
		traceparent := pod.Annotations["keyturn.dev/traceparent"]
		if trace := completed.Trace.ID(); trace == "" || !strings.HasPrefix(traceparent, "00-"+trace+"-") {
			t.Errorf("traceparent of the pod: got %q, want one of trace %q", traceparent, trace)
		}
		env := pod.Spec.Containers[0].Env
		if len(env) != 1 || env[0].ValueFrom == nil || env[0].ValueFrom.FieldRef.FieldPath != field {
			t.Errorf("environment of the container: got %v, want TRACEPARENT from the annotation", env)
		}
	}
	if !found {
		t.Error("there is no pod of the rollout")
	}
}
