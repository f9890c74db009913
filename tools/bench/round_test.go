package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestTheClockOfAChangeStartsWhereTheWriteIsSent has an API server that takes 20 ms to answer a write, which its watches see after 5.
func TestTheClockOfAChangeStartsWhereTheWriteIsSent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(context.Context, *bench) (time.Duration, error)
	}{
		{name: "of one", change: func(ctx context.Context, b *bench) (time.Duration, error) { return b.one(ctx, &floor{}, 0) }},
		{name: "of all at once", change: func(ctx context.Context, b *bench) (time.Duration, error) {
			_, took, err := b.atOnce(ctx, &floor{}, 1)
			return took, err
		}},
		{name: "of a shared one", change: func(ctx context.Context, b *bench) (time.Duration, error) {
			_, err := b.shareds(ctx, &floor{called: contenderFloor})
			return time.Duration(median(b.results.of(shared, contenderFloor)) * float64(time.Millisecond)), err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				b := &bench{began: time.Now(), results: make(results), observer: makeObserver(patience)}
				b.cluster = clusterOf(1, allNamespaces, 1, 1)
				b.cluster.client = client
				generation := int64(1)
				b.observer.see(seen(deploymentName(0), generation, generation), time.Now())
				client.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
					<-time.After(5 * time.Millisecond)
					generation++
					b.observer.see(seen(deploymentName(0), generation, generation), time.Now())
					<-time.After(15 * time.Millisecond)
					return true, action.(clienttesting.UpdateAction).GetObject(), nil
				})
				took, err := tt.change(t.Context(), b)
				if err != nil || took != 5*time.Millisecond {
					t.Errorf("took %s, %v; want 5ms", took, err)
				}
			})
		})
	}
}
