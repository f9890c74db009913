package actuate

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/workload"
)

// runnerOf is a Rollout that runs the pods of a Deployment, at a resourceVersion.
func runnerOf(t *testing.T, version, deployment, phase string) *workload.Workload {
	t.Helper()
	w, ok := workload.Read(workload.ArgoRollout(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "edge", "namespace": "shop", "uid": "uid-edge", "resourceVersion": version,
			"annotations": map[string]any{workload.AnnotationRollOn: "secret/db"},
		},
		"spec":   map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": deployment}},
		"status": map[string]any{"phase": phase, "observedGeneration": "0", "workloadObservedGeneration": "99"},
	}}, workload.Reading{})
	if !ok {
		t.Fatal("it cannot be read")
	}
	return w
}

func TestADeploymentFollowsTheRolloutThatRunsItsPods(t *testing.T) {
	web, _ := workload.Read(deployments, webDeployment("10", nil), workload.Reading{})
	key := web.Key()
	changed := make(map[workload.Key]int)
	for _, order := range []string{"the Deployment first", "the Rollout first"} {
		t.Run(order, func(t *testing.T) {
			x := newIndex(workload.Reading{}, func(key workload.Key) { changed[key]++ }, unlinked)
			if order == "the Deployment first" {
				x.observe(web, false)
			}
			x.observe(runnerOf(t, "20", "web", "Paused"), true)
			if order == "the Rollout first" {
				x.observe(web, false)
			}
			wantOnly := func(what string, state workload.State, dependents string) {
				t.Helper()
				var found []workload.Key
				for _, w := range x.dependents(db) {
					found = append(found, w.Key())
				}
				if got := fmt.Sprint(found); got != dependents || x.get(key).Progress.State != state {
					t.Errorf("%s: dependents are %s in state %d, want %s in state %d", what, got, x.get(key).Progress.State, dependents, state)
				}
			}
			wantOnly("while it runs the pods", workload.Waiting, "["+fmt.Sprint(key)+"]")
			before := changed[key]
			x.observe(runnerOf(t, "21", "web", "Degraded"), true)
			wantOnly("when it has failed", workload.Failed, "["+fmt.Sprint(key)+"]")
			if changed[key] == before {
				t.Error("nobody looks at the Deployment when the Rollout has changed")
			}
			again, _ := workload.Read(deployments, webDeployment("22", nil), workload.Reading{})
			x.observe(again, true)
			wantOnly("when the Deployment has changed, too", workload.Failed, "["+fmt.Sprint(key)+"]")

			x.observe(runnerOf(t, "23", "other", "Degraded"), true)
			wantOnly("when it runs the pods of another", web.Progress.State, "[]")
			x.observe(runnerOf(t, "24", "web", "Degraded"), true)
			x.forget(workload.Key{Kind: "rollout", Namespace: "shop", Name: "edge"}, "uid-edge")
			wantOnly("when it is gone", web.Progress.State, "[]")
		})
	}
}
