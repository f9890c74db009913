package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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
	var policies, bindings []string
	for _, object := range recipeObjects(t, recipe) {
		isPolicy := strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy")
		if !isPolicy && !strings.HasSuffix(object.GetName(), "-target-"+recipe) {
			continue
		}
		content, err := object.MarshalJSON()
		testkit.Must(t, err)
		c.apply(c.own(string(content)))
		switch object.GetKind() {
		case "ValidatingAdmissionPolicy":
			policies = append(policies, c.own(object.GetName()))
		case "ValidatingAdmissionPolicyBinding":
			bindings = append(bindings, c.own(object.GetName()))
		}
	}
	t.Cleanup(func() { removePolicies(t, policies, bindings) })
	testkit.Must(t, programs.AwaitPolicy(t.Context(), kubernetes.NewForConfigOrDie(c.account("-actuator")), c.system))
	testkit.Await(t, "the policy of the target is in force", func(context.Context) bool {
		return c.refusedFor(recipe, c.patch(c.namespace, to, `{op: add, path: /metadata/labels/a, value: b}`))
	})
}

// removePolicies removes admission policies, and their bindings first.
func removePolicies(t testing.TB, policies, bindings []string) {
	t.Helper()
	for _, of := range []struct {
		resource string
		names    []string
	}{{"validatingadmissionpolicybindings", bindings}, {"validatingadmissionpolicies", policies}} {
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: of.resource}
		client := dynamic.NewForConfigOrDie(plane.Config()).Resource(resource)
		for _, name := range of.names {
			if err := client.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
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
	const (
		revised   = `{op: add, path: TEMPLATE/annotations/keyturn.dev~1revision, value: x}`
		restarted = `{op: add, path: /metadata/annotations/kubectl.kubernetes.io~1restartedAt, value: '2026-11-23T00:00:00Z'}`
		timed     = `{op: add, path: /metadata/annotations/keyturn.dev~1triggered-at, value: '2026-11-23T00:00:00Z'}`
		marked    = `{op: add, path: /metadata/annotations/keyturn.dev~1revision, value: x}`
	)
	bare := confinedPrometheus
	bare.name = "bare"
	tests := []struct {
		recipe, operator, objects, kind string
		to                              target
		// rolls is what a roll writes, and long what is too long of it.
		rolls, long string
		refused     []forged
		allowed     map[string]target
	}{
		{
			recipe: prometheusRecipe, operator: build.PrometheusOperator, objects: confinedPrometheuses, kind: "Prometheus", to: confinedPrometheus,
			rolls: revised, long: `{op: add, path: TEMPLATE/annotations/keyturn.dev~1cause, value: ` + strings.Repeat("x", 9<<10) + `}`,
			refused: ofPrometheus,
			allowed: map[string]target{
				recordOf: confinedPrometheus, recordOf + ", " + revised: confinedPrometheus,
				recordOf + `, {op: add, path: TEMPLATE, value: {}}, {op: add, path: TEMPLATE/annotations, value: {}}, ` + revised: bare,
			},
		},
		{
			recipe: "cloudnative-pg", operator: build.CloudNativePG, objects: confinedCluster, kind: "Cluster", to: confinedClusterOf,
			rolls: restarted, long: `{op: add, path: /metadata/annotations/kubectl.kubernetes.io~1restartedAt, value: ` + strings.Repeat("x", 9<<10) + `}`,
			refused: []forged{
				{"replaces the image", `{op: add, path: /spec/imageName, value: b}`},
				{"scales", `{op: replace, path: /spec/instances, value: 9}`},
				{"reads a Secret", `{op: add, path: /spec/envFrom, value: [{secretRef: {name: admin}}]}`},
				{"adds a superuser", `{op: add, path: /spec/enableSuperuserAccess, value: true}`},
				{"fences the instances", `{op: add, path: /metadata/annotations/cnpg.io~1fencedInstances, value: '["*"]'}`},
				{"hides an image in a restart", restarted + `, {op: add, path: /spec/imageName, value: b}`},
			},
			allowed: map[string]target{recordOf + ", " + restarted + ", " + timed + ", " + marked: confinedClusterOf},
		},
	}
	for _, tt := range tests {
		t.Run(tt.recipe, func(t *testing.T) {
			t.Parallel()
			testkit.Must(t, plane.ApplyKindsOf(t.Context(), tt.operator, tt.kind))
			c := newConfined(t)
			for _, namespace := range []string{c.namespace, c.system, c.labeled, metav1.NamespaceSystem} {
				c.apply(strings.ReplaceAll(tt.objects, "NAMESPACE", namespace))
			}
			owned := c.owned(tt.to).GetManagedFields()
			c.confineTarget(t, tt.recipe, tt.to)
			refused := func(what, namespace, operations string) {
				t.Helper()
				if err := c.patch(namespace, tt.to, operations); !c.refusedFor(tt.recipe, err) {
					t.Errorf("a patch that %s: got %v, want that the policy refuses it", what, err)
				}
			}
			for _, patch := range append(tt.refused, ofAnything...) {
				refused(patch.name, c.namespace, patch.operations)
			}
			for _, reowning := range reownings {
				refused(reowning.name, c.namespace, reown(reowning.change(owned)))
			}
			for _, namespace := range []string{c.system, c.labeled, metav1.NamespaceSystem} {
				refused("rolls in "+namespace, namespace, tt.rolls)
			}
			refused("fills the annotations", c.namespace,
				`{op: add, path: /metadata/annotations/keyturn.dev~1rolled, value: `+strings.Repeat("x", 170<<10)+`}`)
			refused("writes a long text", c.namespace, tt.long)
			refused("writes a long request", c.namespace, annotate("/metadata", "keyturn.dev/rolled-now", 8<<10+1))
			refused("writes a long text about the last roll", c.namespace, annotate("/metadata", "keyturn.dev/last", 2001))
			for operations, to := range tt.allowed {
				if err := c.patch(c.namespace, to, operations); err != nil {
					t.Errorf("what a roll of %s writes, %s: %v", to.name, operations, err)
				}
			}
			c.tells(t, tt.kind, tt.to.resource.GroupVersion().String())
		})
	}
}

var confinedClusterOf = target{schema.GroupVersionResource{Group: "postgresql.cnpg.io", Version: "v1", Resource: "clusters"}, "db", ""}

// confinedCluster is a Cluster of CloudNativePG in a NAMESPACE.
var confinedCluster = confinedObject("postgresql.cnpg.io/v1", "Cluster", "db", "instances: 1, storage: {size: 1Gi}")

// tells checks that the actuator may write Events of its own about objects of a target, and about them alone.
func (c *confined) tells(t *testing.T, kind, version string) {
	t.Helper()
	event := func(kind, version, component, message string) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "a", "namespace": c.namespace},
			"involvedObject": map[string]any{"kind": kind, "apiVersion": version, "name": "metrics", "namespace": c.namespace},
			"reason":         "Rolled", "message": message, "type": "Normal",
			"reportingComponent": component, "reportingInstance": "a", "source": map[string]any{"component": "keyturn"},
		}}
		_, err := c.actuator.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(c.namespace).
			Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := event(kind, version, "keyturn.dev/actuator", strings.Repeat("x", 1024)); err != nil {
		t.Errorf("an Event about it: %v", err)
	}
	for _, other := range []struct{ what, kind, version, component, message string }{
		{"of another component", kind, version, "kubelet", ""},
		{"about a kind that is no target", "PrometheusRule", version, "keyturn.dev/actuator", ""},
		{"about a kind of the name in another group", kind, "example.org/v1", "keyturn.dev/actuator", ""},
		{"about a Secret", "Secret", "v1", "keyturn.dev/actuator", ""},
		{"with a long message", kind, version, "keyturn.dev/actuator", strings.Repeat("x", 1025)},
	} {
		err := event(other.kind, other.version, other.component, other.message)
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("an Event %s: got %v, want that a policy refuses it", other.what, err)
		}
	}
}
