package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// recipeCase is a recipe whose operator is not there: the test does to the status what that does.
type recipeCase struct {
	recipe, operator string
	resource         schema.GroupVersionResource
	// kind is what outcomes call it, and manifest is one named main. That reads secret/db, or a StatefulSet that it owns does.
	kind, manifest string
	owns           bool
	// trigger is the path of what a roll writes, and status what the operator writes then, of an object that it is given.
	trigger []string
	status  func(*unstructured.Unstructured) map[string]any
	// asks says that people and tools write the trigger, too: a later time.
	asks bool
}

// isReadyNow is the status of an object whose controller has observed it and says that it is ready.
func isReadyNow(object *unstructured.Unstructured) map[string]any {
	status := map[string]any{
		"observedGeneration": object.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-11-23T00:00:00Z",
		}},
	}
	if asked := object.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]; asked != "" {
		status["lastHandledReconcileAt"] = asked
	}
	return status
}

var requestedAt = []string{"metadata", "annotations", "reconcile.fluxcd.io/requestedAt"}

func recipeCases() []recipeCase {
	return []recipeCase{
		{
			recipe: "knative", operator: build.KnativeServing, kind: "ksvc",
			resource: schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"},
			manifest: `apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: main, annotations: {keyturn.dev/roll-on: auto}}
spec: {template: {spec: {containerConcurrency: 3, containers: [{image: example.com/app, envFrom: [{secretRef: {name: db}}]}]}}}
`,
			trigger: []string{"spec", "template", "metadata", "annotations", "keyturn.dev/revision"}, status: isReadyNow,
		},
		{
			recipe: "cloudnative-pg", operator: build.CloudNativePG, kind: "cluster",
			resource: schema.GroupVersionResource{Group: "postgresql.cnpg.io", Version: "v1", Resource: "clusters"},
			manifest: `apiVersion: postgresql.cnpg.io/v1
kind: Cluster
metadata: {name: main, annotations: {keyturn.dev/roll-on: auto}}
spec: {instances: 3, storage: {size: 1Gi}, env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: db, key: password}}}]}
`,
			trigger: []string{"metadata", "annotations", "kubectl.kubernetes.io/restartedAt"},
			status: func(*unstructured.Unstructured) map[string]any {
				return map[string]any{"phase": "Cluster in healthy state"}
			},
			asks: true,
		},
		{
			recipe: "clickhouse", operator: build.ClickHouseOperator, kind: "clickhouseinstallation", owns: true,
			resource: schema.GroupVersionResource{Group: "clickhouse.altinity.com", Version: "v1", Resource: "clickhouseinstallations"},
			manifest: `apiVersion: clickhouse.altinity.com/v1
kind: ClickHouseInstallation
metadata: {name: main, annotations: {keyturn.dev/roll-on: auto}}
spec: {restart: RollingUpdate, configuration: {clusters: [{name: main, layout: {shardsCount: 1, replicasCount: 1}}]}}
`,
			trigger: []string{"spec", "taskID"},
			status: func(object *unstructured.Unstructured) map[string]any {
				task, _, _ := unstructured.NestedString(object.Object, "spec", "taskID")
				return map[string]any{"taskID": task, "taskIDsCompleted": []any{task, "earlier"}}
			},
		},
		{
			recipe: "flux-kustomize", operator: build.KustomizeController, kind: "kustomization",
			resource: schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
			manifest: `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: main, annotations: {keyturn.dev/roll-on: auto}}
spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: none}, postBuild: {substituteFrom: [{kind: Secret, name: db}]}}
`,
			trigger: requestedAt, status: isReadyNow, asks: true,
		},
		{
			recipe: "flux-helm", operator: build.HelmController, kind: "helmrelease",
			resource: schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"},
			manifest: `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: main, annotations: {keyturn.dev/roll-on: auto}}
spec: {interval: 1h, chartRef: {kind: OCIRepository, name: none}, valuesFrom: [{kind: Secret, name: db}]}
`,
			trigger: requestedAt, status: isReadyNow, asks: true,
		},
	}
}

// ownedForm is a StatefulSet of a controller named main, of an apiVersion, a kind and a UID.
const ownedForm = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: owned, ownerReferences: [{apiVersion: %s, kind: %s, name: main, uid: %s, controller: true}]}
spec:
  replicas: 0
  selector: {matchLabels: {app: owned}}
  template:
    metadata: {labels: {app: owned}}
    spec: {containers: [{name: app, image: example.com/app, envFrom: [{secretRef: {name: db}}]}]}
`

func TestTheResourceOfARecipeIsRolledOnceForAChange(t *testing.T) {
	t.Parallel()
	for _, c := range recipeCases() {
		t.Run(c.recipe, func(t *testing.T) {
			testkit.Must(t, plane.ApplyKindsOf(t.Context(), c.operator))
			r := newTargetRig(t, c.recipe, c.resource, programs.Options{})
			r.secret("db", map[string]string{"password": "one"})
			r.create("%s", c.manifest)
			r.setStatus("main", c.status)
			if c.owns {
				r.create(ownedForm, c.resource.GroupVersion(), r.object("main").GetKind(), r.object("main").GetUID())
			}
			r.start()
			if held := r.field("main", c.trigger...); held != "" {
				t.Fatalf("before any change: got the trigger %q", held)
			}
			r.secret("db", map[string]string{"password": "two"})
			r.eventually("the trigger is written", func(context.Context) bool { return r.field("main", c.trigger...) != "" })
			if record := r.field("main", "metadata", "annotations", "keyturn.dev/rolled"); record == "" {
				t.Error("the trigger is written without the record")
			}
			r.setStatus("main", c.status)
			completed := r.outcomeOf("main", events.VerbCompleted)
			if completed.Workload.Kind != c.kind || completed.Revision == "" {
				t.Errorf("completed: got %s at revision %q, want %s/main at one", completed.Workload, completed.Revision, c.kind)
			}
			written := r.field("main", c.trigger...)

			// What its controller or a person writes meanwhile is nothing to roll for.
			r.merge("main", `{"metadata":{"labels":{"edited":"by-hand"}}}`)
			if c.asks {
				written = time.Now().Add(time.Second).UTC().Format(time.RFC3339)
				r.merge("main", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, c.trigger[2], written))
			}
			if c.owns {
				r.rewriteOwned()
			}
			r.setStatus("main", c.status)
			r.quiet()
			if again := r.field("main", c.trigger...); again != written || r.starts() != 1 {
				t.Errorf("after that: got %d rollouts and the trigger %q, want one and %q", r.starts(), again, written)
			}
			r.secret("db", map[string]string{"password": "three"})
			r.eventually("it is rolled for the next change", func(context.Context) bool { return r.field("main", c.trigger...) != written })
			r.setStatus("main", c.status)
			r.eventually("that is complete, too", func(context.Context) bool { return len(r.told(events.VerbCompleted)) == 2 })
			told := r.outcomes()
			if diff := cmp.Diff(map[events.Verb]int{events.VerbStarted: 2, events.VerbCompleted: 2}, verbs(told)); diff != "" {
				t.Errorf("the outcomes of two changes (-want +got):\n%s\n%+v", diff, told)
			}
		})
	}
}

// setStatus writes the status of an object, as its controller does.
func (r *targetRig) setStatus(name string, of func(*unstructured.Unstructured) map[string]any) {
	r.Helper()
	body, err := json.Marshal(map[string]any{"status": of(r.object(name))})
	testkit.Must(r, err)
	r.merge(name, string(body), "status")
}

// rewriteOwned writes the pod template of the StatefulSet that is owned, and takes that back, as the operator does with what it has not written.
func (r *targetRig) rewriteOwned() {
	r.Helper()
	for _, value := range []string{`"by-hand"`, "null"} {
		r.patchStateful("owned", `{"spec":{"template":{"metadata":{"annotations":{"keyturn.dev/revision":`+value+`}}}}}`)
	}
}

// verbs counts outcomes by their verbs.
func verbs(outcomes []events.Outcome) map[events.Verb]int {
	counts := map[events.Verb]int{}
	for _, outcome := range outcomes {
		counts[outcome.Verb]++
	}
	return counts
}
