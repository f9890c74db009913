package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

var confinedPrometheus = target{prometheuses, "metrics", "/spec/podMetadata"}

// confinedPrometheuses are one with annotations for its pods, and one without, in a NAMESPACE.
var confinedPrometheuses = confinedObject("monitoring.coreos.com/v1", "Prometheus", "metrics",
	"replicas: 0, podMetadata: {labels: {team: shop}, annotations: {owner: shop}}, secrets: [db], serviceAccountName: metrics") + "---\n" +
	confinedObject("monitoring.coreos.com/v1", "Prometheus", "bare", "replicas: 0")

// confineTarget applies a recipe for the accounts, and waits until its policy is in force: a patch of an object is refused then.
func (c *confined) confineTarget(t *testing.T, recipe string, to target) {
	t.Helper()
	var names []string
	for _, object := range recipeObjects(t, recipe) {
		isPolicy := strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy")
		if !isPolicy && !strings.HasSuffix(object.GetName(), "-target-"+recipe) {
			continue
		}
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		c.apply(c.own(string(content)))
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			names = append(names, c.own(object.GetName()))
		}
	}
	t.Cleanup(func() { c.removePolicies(names...) })
	if err := programs.AwaitPolicy(t.Context(), kubernetes.NewForConfigOrDie(c.account("-actuator")), c.system); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the policy of the target is in force", func(context.Context) bool {
		return c.refusedFor(recipe, c.patch(c.namespace, to, `{op: add, path: /metadata/labels/a, value: b}`))
	})
}

// removePolicies removes policies and their bindings.
func (c *confined) removePolicies(names ...string) {
	c.Helper()
	for _, resource := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies"} {
		client := c.admin.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
		for _, name := range names {
			if err := client.Delete(context.WithoutCancel(c.Context()), name, metav1.DeleteOptions{}); err != nil {
				c.Error(err)
			}
		}
	}
}

// refusedFor reports whether an error is a refusal of the policy of a recipe.
func (c *confined) refusedFor(recipe string, err error) bool {
	return err != nil && strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s-target-%s'", c.system, recipe))
}

// ofPrometheus are forged patches of a Prometheus.
var ofPrometheus = []forged{
	{"replaces the image", `{op: add, path: /spec/image, value: b}`},
	{"mounts another Secret", `{op: add, path: /spec/secrets/-, value: admin}`},
	{"replaces the service account", `{op: replace, path: /spec/serviceAccountName, value: admin}`},
	{"adds a container", `{op: add, path: /spec/containers, value: [{name: a, image: b}]}`},
	{"adds a volume", `{op: add, path: /spec/volumes, value: [{name: a, secret: {secretName: a}}]}`},
	{"scales", `{op: replace, path: /spec/replicas, value: 9}`},
	{"pauses", `{op: add, path: /spec/paused, value: true}`},
	{"labels the pods", `{op: add, path: TEMPLATE/labels/a, value: b}`},
	{"removes the labels of the pods", `{op: remove, path: TEMPLATE/labels}`},
	{"names the pods", `{op: add, path: TEMPLATE/name, value: b}`},
	{"annotates the pods", `{op: add, path: TEMPLATE/annotations/a, value: b}`},
	{"changes an annotation of the pods", `{op: replace, path: TEMPLATE/annotations/owner, value: b}`},
	{"removes the annotations of the pods", `{op: remove, path: TEMPLATE/annotations}`},
	{"removes all of the pods' metadata", `{op: remove, path: TEMPLATE}`},
	{"writes a revision on the object", `{op: add, path: /metadata/annotations/keyturn.dev~1revision, value: x}`},
	{"hides a Secret in a roll", `{op: add, path: TEMPLATE/annotations/keyturn.dev~1revision, value: x}, ` +
		`{op: add, path: /spec/secrets/-, value: admin}`},
}

func TestTheActuatorsTokenWritesOfATargetWhatARollWrites(t *testing.T) {
	t.Parallel()
	if err := plane.ApplyKindsOf(t.Context(), build.PrometheusOperator); err != nil {
		t.Fatal(err)
	}
	c := newConfined(t)
	for _, namespace := range []string{c.namespace, c.system, c.labeled, metav1.NamespaceSystem} {
		c.apply(strings.ReplaceAll(confinedPrometheuses, "NAMESPACE", namespace))
	}
	owned := c.owned(confinedPrometheus).GetManagedFields()
	c.confineTarget(t, prometheusRecipe, confinedPrometheus)
	refused := func(what, namespace string, to target, operations string) {
		t.Helper()
		if err := c.patch(namespace, to, operations); !c.refusedFor(prometheusRecipe, err) {
			t.Errorf("a patch that %s: got %v, want that the policy refuses it", what, err)
		}
	}
	for _, patch := range append(ofPrometheus, ofAnything...) {
		refused(patch.name, c.namespace, confinedPrometheus, patch.operations)
	}
	for _, reowning := range reownings {
		refused(reowning.name, c.namespace, confinedPrometheus, reown(reowning.change(owned)))
	}
	const revised = `{op: add, path: TEMPLATE/annotations/keyturn.dev~1revision, value: x}`
	for _, namespace := range []string{c.system, c.labeled, metav1.NamespaceSystem} {
		refused("rolls in "+namespace, namespace, confinedPrometheus, revised)
	}
	refused("fills the annotations", c.namespace, confinedPrometheus,
		`{op: add, path: /metadata/annotations/keyturn.dev~1rolled, value: `+strings.Repeat("x", 170<<10)+`}`)
	refused("writes a long cause", c.namespace, confinedPrometheus,
		`{op: add, path: TEMPLATE/annotations/keyturn.dev~1cause, value: `+strings.Repeat("x", 9<<10)+`}`)

	bare := confinedPrometheus
	bare.name = "bare"
	for _, allowed := range []struct {
		to target
		forged
	}{
		{confinedPrometheus, forged{"records", recordOf}},
		{confinedPrometheus, forged{"rolls", recordOf + ", " + revised}},
		{bare, forged{"rolls without annotations of the pods", recordOf + `, {op: add, path: TEMPLATE, value: {}}, {op: add, path: TEMPLATE/annotations, value: {}}, ` + revised}},
	} {
		if err := c.patch(c.namespace, allowed.to, allowed.operations); err != nil {
			t.Errorf("a patch that %s: %v", allowed.name, err)
		}
	}
	c.tells(t, "Prometheus", "monitoring.coreos.com/v1")
}

// tells checks that the actuator may write Events of its own about objects of a target, and about them alone.
func (c *confined) tells(t *testing.T, kind, version string) {
	t.Helper()
	event := func(kind, version, component string) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "a", "namespace": c.namespace},
			"involvedObject": map[string]any{"kind": kind, "apiVersion": version, "name": "metrics", "namespace": c.namespace},
			"reason":         "Rolled", "type": "Normal", "reportingComponent": component, "reportingInstance": "a", "source": map[string]any{"component": "keyturn"},
		}}
		_, err := c.actuator.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(c.namespace).
			Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := event(kind, version, "keyturn.dev/actuator"); err != nil {
		t.Errorf("an Event about it: %v", err)
	}
	for _, other := range []struct{ what, kind, version, component string }{
		{"of another component", kind, version, "kubelet"},
		{"about a kind that is no target", "PrometheusRule", version, "keyturn.dev/actuator"},
		{"about a kind of the name in another group", kind, "example.org/v1", "keyturn.dev/actuator"},
		{"about a Secret", "Secret", "v1", "keyturn.dev/actuator"},
	} {
		if err := event(other.kind, other.version, other.component); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("an Event %s: got %v, want that a policy refuses it", other.what, err)
		}
	}
}
