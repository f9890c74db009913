package tests

import (
	"context"
	"slices"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// deployOwned creates a Deployment as its owner does. It reads a Secret, and its pods count as available only after two seconds: whoever
// reverts a rollout at once does so before it is complete.
func (r *rig) deployOwned(name, secret string) {
	r.Helper()
	owned := r.reading(name, secret, 1, nil)
	owned.Spec.MinReadySeconds = 2
	deployments := r.client.AppsV1().Deployments(r.namespace)
	if _, err := deployments.Create(r.Context(), owned, metav1.CreateOptions{FieldManager: ownerManager}); err != nil {
		r.Fatal(err)
	}
	r.eventually("the pods of "+name+" are available", func(context.Context) bool { return r.deployment(name).Status.AvailableReplicas == 1 })
}

// series returns the value of a program's metric with these labels, empty if there is none.
func (r *rig) series(program *programs.Program, name string, labels ...string) string {
	r.Helper()
	_, metrics, err := program.Get(r.Context(), "metrics", "/metrics")
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(metrics) {
		has := func(label string) bool { return strings.Contains(line, label) }
		if (strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ")) && !slices.ContainsFunc(labels, func(label string) bool { return !has(label) }) {
			fields := strings.Fields(line)
			return fields[len(fields)-1]
		}
	}
	return ""
}

// lines returns the lines of a text that contain all of the words.
func lines(text string, words ...string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			found = append(found, line)
		}
	}
	return found
}

func TestARolloutThatAnOperatorRevertsIsReportedAndNotCounted(t *testing.T) {
	t.Parallel()
	received, endpoint := receiveOTLP(t)
	dir := t.TempDir()
	r := newRig(t, programs.Options{
		Dir: dir, ActuatorArgs: []string{"--settle", "50ms"},
		Env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=100",
		},
	})
	values := [][]byte{secretText(t), secretText(t), secretText(t)}
	write := func(i int) { r.secret("db", map[string]string{"password": string(values[i])}) }
	write(0)
	r.deployOwned("web", "db")
	r.start()
	operator := r.operate("web")
	write(1)

	failed := r.outcomeOf("web", events.VerbFailed)
	const message = byOwner + "it is rolled again in 1m0s"
	if failed.Reason != "reverted" || failed.Message != message {
		t.Errorf("the rollout failed with %s: %s, want reverted: %s", failed.Reason, failed.Message, message)
	}
	r.eventually("the record is that of before, and the revert is counted", func(context.Context) bool {
		annotations := r.deployment("web").Annotations
		record := annotations["keyturn.dev/rolled"]
		return record != "" && !strings.Contains(record, "@"+failed.Sources[0].ResourceVersion+"/") &&
			strings.Contains(annotations["keyturn.dev/reverted"], `"secret/db":"1:`)
	})
	r.revertIsTold(received, message)

	operator.keeps.Store(true)
	write(2)
	r.outcomeOf("web", events.VerbCompleted)
	if programs.Revision(&r.deployment("web").Spec.Template) == "" {
		t.Error("the pod template has no revision after the operator has learned to keep it")
	}
	r.quiet()
	r.nothingLeaks(received, dir, values)
}

// revertIsTold checks that each way out has the reverted rollout of the Deployment web, and none that it is complete.
func (r *rig) revertIsTold(received *spans, message string) {
	r.Helper()
	history := r.ask("history", "-n", r.namespace, "--workload", "deployment/web")
	if len(lines(history, "  failed  ", "reverted; secret/db; "+message)) != 1 || len(lines(history, "  completed  ")) != 0 {
		r.Errorf("history: want one line of the failed rollout, and none of a completed one:\n%s", history)
	}
	explained := r.explain("deployment/web")
	for _, want := range []string{
		"It was last rolled at TIME for secret/db: failed (reverted): " + message, "roll (content-changed): content that the pods read has changed",
	} {
		if !strings.Contains(explained, want) {
			r.Errorf("explain does not say %q:\n%s", want, explained)
		}
	}
	r.eventually("there is a Kubernetes Event of it", func(context.Context) bool { return len(r.kubeEvents("web", "RolloutFailed")) == 1 })
	if event := r.kubeEvents("web", "RolloutFailed")[0]; event.Type != corev1.EventTypeWarning || event.Message != "reverted: "+message {
		r.Errorf("Kubernetes Event: got %s %q", event.Type, event.Message)
	}
	if got := r.kubeEvents("web", "RolloutCompleted"); len(got) != 0 {
		r.Errorf("a Kubernetes Event says that the rollout is complete: %q", got[0].Message)
	}
	if len(lines(r.actuator.Output(), `"msg":"rollout ended"`, `"verb":"failed"`, `"reason":"reverted"`, `"trace_id":"`)) != 1 {
		r.Error("the log does not have the reverted rollout once, with its trace")
	}
	if got := r.series(r.actuator, "keyturn_rollouts_total", `outcome="failed"`, `reason="reverted"`, `kind="deployment"`); got != "1" {
		r.Errorf("reverted rollouts in the metrics: got %q, want 1", got)
	}
	if got := r.series(r.actuator, "keyturn_rollouts_total", `outcome="completed"`); got != "" {
		r.Errorf("completed rollouts in the metrics: got %s, want none", got)
	}
	r.eventually("the span of the rollout has arrived", func(context.Context) bool { return received.one(r.T, "rollout deployment") != nil })
	span := received.one(r.T, "rollout deployment")
	if status := span.GetStatus(); status.GetCode() != otlp.Status_STATUS_CODE_ERROR || status.GetMessage() != "reverted" {
		r.Errorf("status of the span: got %s %q, want an error that is reverted", status.GetCode(), status.GetMessage())
	}
}

// nothingLeaks stops the programs, and searches what they have written and sent for the values.
func (r *rig) nothingLeaks(received *spans, dir string, values [][]byte) {
	r.Helper()
	h := &haystack{}
	c := &canaries{rig: r}
	for _, value := range values {
		c.watch("secret/db", "password", value)
	}
	c.collect(h, "web")
	h.add("history", []byte(r.ask("history", "-n", r.namespace)))
	for _, program := range []*programs.Program{r.watcher, r.actuator} {
		if err := program.Stop(patience); err != nil {
			r.Fatalf("stopping the %s: %v", program.Name(), err)
		}
	}
	addFiles(r.T, h, dir, r.programs.KeyFile())
	received.addTo(h)
	if found := h.search(c.needles); len(found) > 0 {
		r.Errorf("%d leaks:\n%s", len(found), strings.Join(found, "\n"))
	}
	for _, way := range []string{"history", "explain", "stream HISTORY", "Events", "Deployments", "span rollout deployment", "the file actuator-"} {
		if h.sizeOf(way) == 0 {
			r.Errorf("nothing came out by %s: it was not looked at", way)
		}
	}
}
