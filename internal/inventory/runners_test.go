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
	return runnerNamed(t, "edge", version, deployment, phase)
}

func runnerNamed(t *testing.T, name, version, deployment, phase string) *workload.Workload {
	t.Helper()
	w, ok := workload.Read(workload.ArgoRollout(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "uid-" + name, "resourceVersion": version,
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

// scaledDown returns the Deployment web without pods of its own.
func scaledDown(t *testing.T, version string) *workload.Workload {
	t.Helper()
	deployment := webDeployment(version, nil)
	deployment.Spec.Replicas = new(int32)
	w, ok := workload.Read(deployments, deployment, workload.Reading{})
	if !ok {
		t.Fatal("it cannot be read")
	}
	return w
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

func TestADeploymentFollowsEachRolloutThatRunsItsPods(t *testing.T) {
	web := scaledDown(t, "10")
	x := indexWith(workload.Reading{}, func(workload.Key) {}, unlinked)
	x.Listed(web, "")
	steps := []struct {
		name string
		do   func()
		want workload.State
		pods int32
	}{
		{"one that is complete", func() { x.Written(runnerNamed(t, "edge", "20", "web", "Healthy")) }, workload.Complete, 1},
		{"another that is paused", func() { x.Written(runnerNamed(t, "inner", "21", "web", "Paused")) }, workload.Waiting, 2},
		{"the first one fails", func() { x.Written(runnerNamed(t, "edge", "22", "web", "Degraded")) }, workload.Failed, 2},
		{
			"the first one goes, and the other still runs it",
			func() { x.Forget(workload.Key{Kind: "rollout", Namespace: "shop", Name: "edge"}, "uid-edge", "") }, workload.Waiting, 1,
		},
		{"the other runs another", func() { x.Written(runnerNamed(t, "inner", "23", "other", "Paused")) }, web.Progress.State, 0},
	}
	for _, step := range steps {
		step.do()
		if p := x.Get(web.Key()).Progress; p.State != step.want || p.Pods != step.pods {
			t.Errorf("%s: got state %d with %d pods, want %d with %d", step.name, p.State, p.Pods, step.want, step.pods)
		}
		if found := x.Dependents(db); step.pods > 0 && (len(found) != 1 || found[0].Key() != web.Key()) {
			t.Errorf("%s: %d dependents, want the Deployment alone", step.name, len(found))
		}
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
	x.Serve(rollouts, "30")
	want("when it is served again", false)
}
