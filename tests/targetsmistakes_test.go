package tests

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// mistakenTargets has an apiVersion that is not served, and a trigger that the schema does not have.
const mistakenTargets = `targets:
- {apiVersion: example.org/v1beta1, kind: Gadget, resource: gadgets, trigger: {annotations: spec.annotations}}
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: "spec.secrets[*]"}], trigger: {field: spec.restart, text: "now"}}
`

// mistakenKinds are what they are about, with the permission and without a policy.
const mistakenKinds = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {secrets: {type: array, items: {type: string}}}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: keyturn-actuator-mistaken}
rules: [{apiGroups: [example.org], resources: [widgets, gadgets], verbs: [list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: keyturn-actuator-mistaken}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: keyturn-actuator-mistaken}
subjects: [{kind: ServiceAccount, name: keyturn-actuator, namespace: keyturn-system}]
`

// It is not parallel: tests of the projector have another definition of the same kind.
func TestMistakesInAFileOfTargetsLoseNothing(t *testing.T) {
	testkit.Await(t, "the kinds are served", func(ctx context.Context) bool {
		return plane.ApplyYAML(ctx, strings.NewReader(mistakenKinds)) == nil
	})
	file := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(file, []byte(mistakenTargets), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--targets-config", file}})
	of := func(resource string) *targetRig {
		gvr := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: resource}
		return &targetRig{rig: r, custom: dynamic.NewForConfigOrDie(plane.Config()).Resource(gvr).Namespace(r.namespace)}
	}
	gadgets, widgets := of("gadgets"), of("widgets")
	r.secret("db", map[string]string{"password": "one"})
	gadgets.create("apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: main}\nspec: {}\n")
	widgets.create("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: pruned, annotations: {keyturn.dev/roll-on: auto}}\nspec: {secrets: [db]}\n")
	owned := r.reading("owned", "db", 1, nil)
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "example.org/v1", Kind: "Gadget", Name: "main", UID: gadgets.object("main").GetUID(), Controller: new(true),
	}}
	r.deploy(owned)
	r.start()
	r.secret("db", map[string]string{"password": "two"})

	r.outcomeOf("owned", events.VerbCompleted)
	const why = "! deployment/owned is rolled itself: its controller gadget/main is not there"
	if said := r.ask("explain", "deployment/owned", "-n", r.namespace, "--targets-config", file); !strings.Contains(said, why) {
		t.Errorf("explain does not say %q:\n%s", why, said)
	}
	r.eventually("the answer to the patch of the Widget was refused", func(context.Context) bool {
		return r.series(r.actuator, "keyturn_patch_errors_total", `kind="widget"`) != ""
	})
	if got := widgets.starts(); got != 1 {
		t.Errorf("rollouts: got %d, want that of the Deployment alone", got)
	}
}
