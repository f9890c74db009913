package main

import (
	"context"
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

func TestRolledOut(t *testing.T) {
	unset := withPod(2, 2, 1, 1, 1)
	unset.Spec.Replicas = nil
	for _, tt := range []struct {
		name       string
		deployment *appsv1.Deployment
		want       bool
	}{
		{name: "the one pod is new and available", deployment: withPod(2, 2, 1, 1, 1), want: true},
		{name: "as many pods as there are by default", deployment: unset, want: true},
		{name: "no pods are asked for", deployment: func() *appsv1.Deployment {
			none := withPod(2, 2, 0, 0, 0)
			none.Spec.Replicas = new(int32(0))
			return none
		}(), want: true},
		{name: "the controller has not seen the patch", deployment: withPod(2, 1, 1, 1, 1)},
		{name: "there is no new pod", deployment: withPod(2, 2, 0, 1, 1)},
		{name: "the old pod is there, too", deployment: withPod(2, 2, 1, 2, 1)},
		{name: "the new pod is not available", deployment: withPod(2, 2, 1, 1, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rolledOut(tt.deployment); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
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

func TestTheFloorStopsWhileItWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	newEndings().wait(ctx, withPod(2, 1, 0, 1, 1))
}
