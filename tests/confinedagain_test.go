package tests

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// knownAgain are the kinds of which the policy knows one more roll by its condition, without its validations.
var knownAgain = []target{deployment, statefulSet, daemonSet}

// again is a roll of what was rolled before: it has other values for what the first has written.
var again = strings.ReplaceAll(recordOf+","+strings.ReplaceAll(marksOf, "AT", "TEMPLATE/metadata"), "value: x", "value: z")

// rollOnce rolls an object as the actuator.
func (c *confined) rollOnce(to target) {
	c.Helper()
	testkit.Must(c, c.send(c.namespace, to, strings.ReplaceAll(again, "value: z", "value: x")))
}

// In this policy everything is refused that its conditions do not know, so that they alone are tested.
func TestOneMoreRollIsKnownWithoutTheValidations(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	before := map[target][]metav1.ManagedFieldsEntry{}
	for _, to := range knownAgain {
		c.owned(to)
		c.rollOnce(to)
		before[to] = c.get(to).GetManagedFields()
	}
	c.rollOnce(cronJob)
	// The bound on all annotations together holds, too, where one of them has most of it and does not change.
	full := target{statefulSet.resource, "full", statefulSet.template}
	c.apply(strings.ReplaceAll(confinedObject("apps/v1", "StatefulSet", full.name,
		"replicas: 0, serviceName: queue, "+confinedSelector+confinedTemplate("Always")), "NAMESPACE", c.namespace))
	c.rollOnce(full)
	most := strings.Replace(again, "keyturn.dev~1rolled, value: z", "keyturn.dev~1rolled, value: "+strings.Repeat("x", 190_000), 1)
	testkit.Must(t, c.send(c.namespace, full, most))
	c.confine("", "  validations:\n", "  validations:\n    - expression: \"false\"\n")

	refused := func(to target, name, operations string) {
		t.Helper()
		if err := c.patch(c.namespace, to, operations); !c.refused(err) {
			t.Errorf("a patch that %s of %s: got %v, want that it is not known", name, to.resource.Resource, err)
		}
	}
	for _, to := range knownAgain {
		if err := c.patch(c.namespace, to, again); err != nil {
			t.Errorf("one more roll of %s: got %v, want that it is known", to.resource.Resource, err)
		}
		long := strings.Repeat("x", 2001)
		refused(to, "writes too much into a mark", strings.Replace(again, "keyturn.dev~1cause, value: z", "keyturn.dev~1cause, value: "+long, 1))
		refused(to, "writes too much into the record", strings.Replace(again, "keyturn.dev~1rolled, value: z", "keyturn.dev~1rolled, value: "+
			strings.Repeat(long, 10), 1))
		// Its bound is in bytes.
		for _, text := range []string{long, strings.Repeat("é", 1001)} {
			refused(to, "writes too much about the last roll", strings.Replace(again, "keyturn.dev~1last, value: z", "keyturn.dev~1last, value: "+text, 1))
		}
		refused(to, "removes the record", `{op: remove, path: /metadata/annotations/keyturn.dev~1rolled}`)
		refused(to, "writes what it never wrote", again+`, {op: add, path: /metadata/annotations/keyturn.dev~1rolled-now, value: z}`)
		for _, forged := range reownings {
			operations := strings.TrimPrefix(reown(forged.change(before[to])), recordOf+", ")
			refused(to, forged.name, operations)
			refused(to, forged.name+" in a roll", again+","+operations)
		}
	}
	refused(cronJob, "rolls once more", again)
	refused(full, "fills the annotations", strings.Replace(again, "{op: add, path: /metadata/annotations/keyturn.dev~1rolled, value: z}, ", "", 1))
	refused(deployment, "counts the templates of a DaemonSet", `{op: add, path: /metadata/annotations/deprecated.daemonset.template.generation, value: '9'}`)
	forgeries(func(to target, patch forged) {
		if slices.Contains(knownAgain, to) {
			refused(to, patch.name, patch.operations)
			refused(to, patch.name+" in a roll", again+","+patch.operations)
		}
	})
}

// As above, everything is refused that the conditions do not know.
func TestAnOrdinaryEventIsKnownWithoutTheValidations(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	c.confine("", "  validations:\n", "  validations:\n    - expression: \"false\"\n")
	written := kube.Event{
		About: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: c.namespace, Name: deployment.name, UID: "a"},
		Name:  "web.0a1b2c3d", Controller: "keyturn.dev/actuator", Type: corev1.EventTypeWarning, Reason: "RolloutFailed",
		Message: strings.Repeat("é", 600), Annotations: map[string]string{"keyturn.dev/traceparent": strings.Repeat("0", 55)}, At: time.Now(),
	}.Object()
	_, err := kubernetes.NewForConfigOrDie(c.account("-actuator")).CoreV1().Events(c.namespace).
		Create(t.Context(), written, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Errorf("an Event as Keyturn writes it: got %v, want that it is known", err)
	}
	for _, tt := range forgedEvents(c.namespace) {
		if err := c.create(c.namespace, kubeEvents, tt.event); c.refused(err) != tt.refused || err != nil && !tt.refused {
			t.Errorf("an Event %s: got %v, want that it is known: %t", tt.name, err, !tt.refused)
		}
	}
}
