package inventory

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/workload"
)

// runnerOf returns a Rollout that runs the pods of a Deployment, at a resourceVersion.
func runnerOf(t *testing.T, version, deployment, phase string) *workload.Workload {
	t.Helper()
	return readAs(t, workload.ArgoRollout(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "edge", "namespace": "shop", "uid": "uid-edge", "resourceVersion": version,
			"annotations": map[string]any{workload.AnnotationRollOn: "secret/db"},
		},
		"spec":   map[string]any{"workloadRef": map[string]any{"kind": "Deployment", "name": deployment}},
		"status": map[string]any{"phase": phase, "observedGeneration": "0", "workloadObservedGeneration": "99"},
	}}, workload.Reading{})
}

// scaledDown returns the Deployment web without pods of its own.
func scaledDown(t *testing.T, version string) *workload.Workload {
	t.Helper()
	deployment := webDeployment(version, nil)
	deployment.Spec.Replicas = new(int32)
	return readAs(t, deployments, deployment, workload.Reading{})
}

func TestADeploymentFollowsTheRolloutThatRunsItsPods(t *testing.T) {
	web := scaledDown(t, "10")
	key := web.Key()
	changed := make(map[workload.Key]int)
	for _, order := range []string{"the Deployment first", "the Rollout first"} {
		t.Run(order, func(t *testing.T) {
			x := indexWith(workload.Reading{}, func(key workload.Key) { changed[key]++ }, unlinked)
			if order == "the Deployment first" {
				x.Listed(web, "")
			}
			x.Written(runnerOf(t, "20", "web", "Paused"))
			if order == "the Rollout first" {
				x.Listed(web, "")
			}
			wantOnly := func(what string, state workload.State, dependents string) {
				t.Helper()
				var found []workload.Key
				for _, w := range x.Dependents(db) {
					found = append(found, w.Key())
				}
				if got := fmt.Sprint(found); got != dependents || x.Get(key).Progress.State != state {
					t.Errorf("%s: dependents are %s in state %d, want %s in state %d", what, got, x.Get(key).Progress.State, dependents, state)
				}
			}
			wantOnly("while it runs the pods", workload.Waiting, "["+fmt.Sprint(key)+"]")
			before := changed[key]
			x.Written(runnerOf(t, "21", "web", "Degraded"))
			wantOnly("when it has failed", workload.Failed, "["+fmt.Sprint(key)+"]")
			if changed[key] == before {
				t.Error("nobody looks at the Deployment when the Rollout has changed")
			}
			x.Written(scaledDown(t, "22"))
			wantOnly("when the Deployment has changed, too", workload.Failed, "["+fmt.Sprint(key)+"]")

			x.Written(runnerOf(t, "23", "other", "Degraded"))
			wantOnly("when it runs the pods of another", web.Progress.State, "[]")
			x.Written(runnerOf(t, "24", "web", "Degraded"))
			x.Forget(workload.Key{Kind: "rollout", Namespace: "shop", Name: "edge"}, "uid-edge", "")
			wantOnly("when it is gone", web.Progress.State, "[]")
		})
	}
}

func TestWhatRunsThePodsOfADeploymentIsKnownWhileItsKindIsServed(t *testing.T) {
	web := scaledDown(t, "10")
	x := indexOf(web, runnerOf(t, "20", "web", "Paused"))
	rollouts := Place{Kind: "rollout"}
	want := func(when string, unserved bool) {
		t.Helper()
		if got := x.IsUnserved(web.Key(), written); got != unserved || len(x.Dependents(db)) != 1 {
			t.Errorf("%s, nobody knows what became of it: %t, want %t; there are %d dependents, want it", when, got, unserved, len(x.Dependents(db)))
		}
	}
	want("at first", false)
	x.Unserve(rollouts, "25", written)
	want("while the kind of its Rollout is not served", true)
	x.Serve(rollouts, "30", false)
	want("when it is served again", false)
}
