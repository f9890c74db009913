package tests

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

var (
	prometheuses  = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses"}
	alertmanagers = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "alertmanagers"}
)

const prometheusRecipe = "prometheus-operator"

// prometheusForm is a Prometheus of a name, with annotations in braces, whose pods are to mount secret/db.
const prometheusForm = `apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: %s, annotations: %s}
spec: {replicas: 1, version: v3.4.0, secrets: [db], podMonitorSelector: {}}
`

// It is not parallel: the operator takes care of all namespaces.
func TestAPrometheusIsRolledAndFollowedToItsEnd(t *testing.T) {
	testkit.Nightly(t)
	r := newTargetRig(t, prometheusRecipe, prometheuses, programs.Options{})
	operator, err := plane.StartPrometheusOperator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	operator.StopAfter(t)
	r.secret("db", map[string]string{"password": "one"})
	r.create(prometheusForm, "main", "{keyturn.dev/roll-on: auto}")
	r.create(prometheusForm, "other", "{}")
	r.awaitSet("prometheus-main", "is ready", isReady)
	r.awaitSet("prometheus-other", "is ready", isReady)
	before := r.stateful(t.Context(), "prometheus-main")
	r.start()
	r.secret("db", map[string]string{"password": "two"})

	completed := r.outcomeOf("main", events.VerbCompleted)
	if completed.Workload.Kind != "prometheus" || completed.Workload.Resource != "prometheuses" || completed.Revision == "" {
		t.Errorf("completed: got %+v at revision %q, want prometheus/main at one", completed.Workload, completed.Revision)
	}
	after := r.stateful(t.Context(), "prometheus-main")
	if got := after.Spec.Template.Annotations["keyturn.dev/revision"]; got != completed.Revision || !isReady(after) {
		t.Errorf("the StatefulSet when it was completed: got revision %q with status %+v, want %q, and ready", got, after.Status, completed.Revision)
	}
	if after.Status.UpdateRevision == before.Status.UpdateRevision {
		t.Error("the pods were not replaced")
	}
	r.eventually("an Event about it says so", func(ctx context.Context) bool {
		list, err := r.client.CoreV1().Events(r.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Prometheus,reason=Rolled"})
		return err == nil && len(list.Items) == 1
	})
	if revision := r.stateful(t.Context(), "prometheus-other").Spec.Template.Annotations["keyturn.dev/revision"]; revision != "" {
		t.Errorf("the one that asks for nothing: got revision %q", revision)
	}
	// The operator takes back a roll of its StatefulSet, which is what the recipe is for. Nothing is rolled for that.
	r.patchStateful("prometheus-main", `{"spec":{"template":{"metadata":{"annotations":{"keyturn.dev/revision":"by-hand"}}}}}`)
	r.awaitSet("prometheus-main", "has its template back", func(set *appsv1.StatefulSet) bool {
		return set.Spec.Template.Annotations["keyturn.dev/revision"] == completed.Revision && isReady(set)
	})
	r.secret("db", map[string]string{"password": "three"})
	r.eventually("it is rolled for the next change", func(context.Context) bool { return len(r.told(events.VerbCompleted)) == 2 })
	told := r.outcomes()
	if diff := cmp.Diff(map[events.Verb]int{events.VerbStarted: 2, events.VerbCompleted: 2}, verbs(told)); diff != "" {
		t.Errorf("the outcomes of two changes (-want +got):\n%s\n%+v", diff, told)
	}
	for _, workload := range []string{"prometheus/main", "statefulset/prometheus-main"} {
		said := r.ask("explain", workload, "-n", r.namespace, "--targets-config", recipeFile(prometheusRecipe))
		if !strings.Contains(said, "prometheus/main in namespace") || !strings.Contains(said, "secret/db ") || !strings.Contains(said, "the workload was rolled for this change") {
			t.Errorf("explain of %s: got\n%s", workload, said)
		}
	}
}

// It is not parallel: it removes a kind.
func TestTargetsAreRolledWheneverTheirKindIsInstalled(t *testing.T) {
	uninstall(t, "alertmanagers.monitoring.coreos.com")
	r := newTargetRig(t, prometheusRecipe, alertmanagers, programs.Options{})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("api", "db", 1, nil))
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("api", events.VerbCompleted)
	if err := plane.ApplyKindsOf(t.Context(), build.PrometheusOperator, "Alertmanager"); err != nil {
		t.Fatal(err)
	}
	r.create("apiVersion: monitoring.coreos.com/v1\nkind: Alertmanager\nmetadata: {name: main, annotations: {keyturn.dev/roll-on: auto}}\nspec: {secrets: [db]}\n")
	r.eventually("the actuator knows the Alertmanager", func(context.Context) bool {
		return r.series(r.actuator, "keyturn_workloads", `kind="alertmanager"`) == "1"
	})
	r.secret("db", map[string]string{"password": "three"})
	r.eventually("it is rolled", func(context.Context) bool {
		return r.field("main", "spec", "podMetadata", "annotations", "keyturn.dev/revision") != ""
	})
}

// uninstall removes a kind, and with it all that there are.
func uninstall(t *testing.T, name string) {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	kinds := dynamic.NewForConfigOrDie(plane.Config()).Resource(resource)
	testkit.Await(t, "the kind is not installed", func(ctx context.Context) bool {
		err := kinds.Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err != nil
	})
}
