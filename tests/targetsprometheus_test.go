package tests

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

var prometheuses = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses"}

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
	testkit.Must(t, err)
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
		list, err := r.client.CoreV1().Events(r.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Prometheus,reason=RolloutCompleted"})
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
	recipe, err := os.ReadFile(recipeFile(prometheusRecipe))
	testkit.Must(t, err)
	r.installed(map[string]string{"KEYTURN_TARGETS_CONFIG": "/etc/keyturn-files/targets.yaml"}, map[string]string{"targets.yaml": string(recipe)})
	for _, workload := range []string{"prometheus/main", "statefulset/prometheus-main"} {
		said := r.ask("explain", workload, "-n", r.namespace)
		if !strings.Contains(said, "prometheus/main in namespace") || !strings.Contains(said, "secret/db ") || !strings.Contains(said, "the workload was rolled for this change") {
			t.Errorf("explain of %s: got\n%s", workload, said)
		}
	}
}
