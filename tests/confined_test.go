package tests

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// target is an object that a patch is for.
type target struct {
	resource schema.GroupVersionResource
	name     string
	// template is the JSON pointer of its pod template, empty if it has none that can be changed.
	template string
}

var (
	apps   = schema.GroupVersion{Group: "apps", Version: "v1"}
	batch  = schema.GroupVersion{Group: "batch", Version: "v1"}
	leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

	deployment    = target{apps.WithResource("deployments"), "web", "/spec/template"}
	statefulSet   = target{apps.WithResource("statefulsets"), "queue", "/spec/template"}
	daemonSet     = target{apps.WithResource("daemonsets"), "agent", "/spec/template"}
	cronJob       = target{batch.WithResource("cronjobs"), "report", "/spec/jobTemplate/spec/template"}
	argoRolloutOf = target{schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}, "canary", "/spec/template"}
	job           = target{batch.WithResource("jobs"), "import", ""}
	controlledJob = target{batch.WithResource("jobs"), "controlled", ""}
	externalOf    = target{schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "externalsecrets"}, "db", ""}

	templated = []target{deployment, statefulSet, daemonSet, cronJob, argoRolloutOf}
	confinees = append(slices.Clip(templated), job, externalOf)
)

// confined has accounts of its own with all rights of deploy that are about workloads, and objects that they may patch.
type confined struct {
	testing.TB
	// system is the namespace of the accounts, and namespace that of the workloads. In labeled nothing may be changed.
	system, namespace, labeled string
	admin, actuator, watcher   dynamic.Interface
}

func newConfined(t testing.TB) *confined {
	t.Helper()
	for operator, kinds := range map[string][]string{
		build.ArgoRollouts: {"Rollout"}, build.ExternalSecrets: {"ExternalSecret", "ClusterExternalSecret"},
	} {
		testkit.Must(t, plane.ApplyKindsOf(t.Context(), operator, kinds...))
	}
	c := &confined{TB: t, system: plane.Namespace(t), namespace: plane.Namespace(t), labeled: plane.Namespace(t)}
	c.admin = dynamic.NewForConfigOrDie(plane.Config())
	for _, file := range []string{
		"base/rbac.yaml", "components/argo-rollouts/rbac.yaml", "components/jobs/rbac.yaml", "components/secret-stores/actuator.yaml",
	} {
		content, err := os.ReadFile("../deploy/" + file)
		testkit.Must(t, err)
		c.apply(c.own(string(content)))
	}
	c.actuator, c.watcher = dynamic.NewForConfigOrDie(c.account("-actuator")), dynamic.NewForConfigOrDie(c.account("-watcher"))
	c.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + c.labeled + ", labels: {keyturn.dev/protected: \"\"}}\n")
	for _, namespace := range []string{c.namespace, c.system, c.labeled, metav1.NamespaceSystem} {
		c.apply(strings.ReplaceAll(confinedObjects, "NAMESPACE", namespace))
	}
	c.awaitRight(c.system, "create leases.coordination.k8s.io")
	c.awaitRight(c.namespace, "patch externalsecrets.external-secrets.io") // That of the last role.
	return c
}

// awaitRight waits until the actuator has a right that a manifest has given it: the API server learns of roles by watches.
func (c *confined) awaitRight(namespace, right string) {
	c.Helper()
	client := kubernetes.NewForConfigOrDie(c.account("-actuator"))
	testkit.Await(c, "the actuator may "+right, func(context.Context) bool { return may(c, client, namespace, right) })
}

// own renames the accounts and all that belongs to them in a manifest.
func (c *confined) own(manifest string) string {
	return strings.NewReplacer("keyturn-system", c.system, "keyturn-", c.system+"-").Replace(manifest)
}

func (c *confined) apply(manifest string) {
	c.Helper()
	testkit.Must(c, plane.ApplyYAML(c.Context(), strings.NewReader(manifest)))
}

// confine applies the policy, for a strategy of Reloader or none, and waits until it is in force. Each pair of further texts is replaced in it.
func (c *confined) confine(strategy string, replace ...string) {
	c.Helper()
	c.Cleanup(c.enforce(strategy, replace...))
}

// enforce is confine until the function that it returns is called.
func (c *confined) enforce(strategy string, replace ...string) (remove func()) {
	c.Helper()
	policy, err := programs.ReadPolicy("../deploy", strategy)
	testkit.Must(c, err)
	c.apply(c.own(strings.NewReplacer(replace...).Replace(policy)))
	testkit.Must(c, programs.AwaitPolicy(c.Context(), kubernetes.NewForConfigOrDie(c.account("-actuator")), c.system))
	actuator, protected, keys := c.system+"-actuator", c.system+"-protected", c.system+"-keys"
	return func() {
		removePolicies(c, []string{actuator, protected, keys}, []string{actuator, protected, protected + "-own", protected + "-by-label", keys})
	}
}

// patch sends operations of a JSON patch as the actuator, in a dry run. TEMPLATE stands for the path of the pod template.
func (c *confined) patch(namespace string, to target, operations string) error {
	c.Helper()
	return c.send(namespace, to, operations, metav1.DryRunAll)
}

// send is patch that is made unless dry says that it is not.
func (c *confined) send(namespace string, to target, operations string, dry ...string) error {
	c.Helper()
	_, err := c.attempt(namespace, to, operations, dry...)
	return err
}

// attempt is send that returns the object, too, as it is after the patch.
func (c *confined) attempt(namespace string, to target, operations string, dry ...string) (*unstructured.Unstructured, error) {
	c.Helper()
	body := "[" + strings.ReplaceAll(operations, "TEMPLATE", to.template) + "]"
	content, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		c.Fatalf("%s: %v", body, err)
	}
	return c.actuator.Resource(to.resource).Namespace(namespace).Patch(c.Context(), to.name, types.JSONPatchType, content,
		metav1.PatchOptions{DryRun: dry, FieldManager: "keyturn"})
}

// create creates an object as the actuator, in a dry run.
func (c *confined) create(namespace string, resource schema.GroupVersionResource, manifest string) error {
	c.Helper()
	object := &unstructured.Unstructured{}
	testkit.Must(c, yaml.Unmarshal([]byte(manifest), &object.Object))
	_, err := c.actuator.Resource(resource).Namespace(namespace).Create(c.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// remove deletes an object as the actuator, in a dry run.
func (c *confined) remove(namespace string, to target) error {
	options := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	return c.actuator.Resource(to.resource).Namespace(namespace).Delete(c.Context(), to.name, options)
}

// refused reports whether an error is a refusal of a policy of the actuator.
func (c *confined) refused(err error) bool {
	return err != nil && (strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s-actuator'", c.system)) ||
		strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s-protected'", c.system)))
}
