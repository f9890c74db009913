package main

import (
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
)

// withPod returns a Deployment with one pod. Updated, replicas and available are for its status.
func withPod(generation, observed int64, updated, replicas, available int32) *appsv1.Deployment {
	deployment := seen("a", generation, observed)
	deployment.Spec.Replicas = new(int32(1))
	deployment.Status.UpdatedReplicas, deployment.Status.Replicas, deployment.Status.AvailableReplicas = updated, replicas, available
	return deployment
}

func TestTheFloorWaitsForTheEndOfARollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndings()
		e.see(withPod(1, 1, 1, 1, 1))
		waited := make(chan struct{})
		go func() {
			e.wait(t.Context(), withPod(3, 1, 0, 1, 1))
			close(waited)
		}()
		for _, step := range []struct {
			state *appsv1.Deployment
			want  bool
		}{
			{state: withPod(2, 2, 1, 1, 1)}, // for an earlier patch
			{state: withPod(3, 2, 1, 1, 1)},
			{state: withPod(3, 3, 1, 2, 1)},
			{state: withPod(3, 3, 1, 1, 1), want: true},
		} {
			e.see(step.state)
			synctest.Wait()
			got := false
			select {
			case <-waited:
				got = true
			default:
			}
			if got != step.want {
				t.Errorf("after generation %d with %+v: it has ended: %v", step.state.Generation, step.state.Status, got)
			}
		}
		e.wait(t.Context(), withPod(3, 2, 0, 1, 1)) // the end was seen before the call
	})
}
