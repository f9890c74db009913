package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/tests/programs"
)

// sight is the latest state of a workload, as the API server reports it.
type sight struct {
	// generation is raised by the API server with each change of the spec, and so with each roll.
	generation int64
	revision   string
	// pods is the desired number of pods.
	pods int32
	// complete is whether the rollout of this generation is complete: all pods are new, and ready.
	complete bool
	// patched is when this generation was first seen, and ready when it was first seen complete.
	patched, ready time.Time
}

// observer watches the workloads of the namespace, by their names in the form "deployment/web".
type observer struct {
	mu      sync.Mutex
	seen    map[string]sight
	changed chan struct{} // Closed, and replaced, with each change.
}

// observe watches until stop is called.
func observe(client kubernetes.Interface) (o *observer, stop func(), err error) {
	o = &observer{seen: map[string]sight{}, changed: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	done := make(chan struct{})
	stop = sync.OnceFunc(func() {
		close(done)
		factory.Shutdown()
	})
	for _, informer := range []cache.SharedIndexInformer{
		factory.Apps().V1().Deployments().Informer(), factory.Apps().V1().StatefulSets().Informer(),
		factory.Apps().V1().DaemonSets().Informer(), factory.Batch().V1().CronJobs().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: o.see, UpdateFunc: func(_, now any) { o.see(now) },
		})
		if err != nil {
			return nil, nil, fmt.Errorf("watching the workloads: %w", err)
		}
	}
	factory.Start(done)
	return o, stop, nil
}

func (o *observer) see(obj any) {
	name, now := look(obj)
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.seen[name]
	now.patched, now.ready = before.patched, before.ready
	if !known || before.generation != now.generation {
		now.patched, now.ready = time.Now(), time.Time{}
	}
	if now.complete && now.ready.IsZero() {
		now.ready = time.Now()
	}
	o.seen[name] = now
	close(o.changed)
	o.changed = make(chan struct{})
}

// all returns the latest state of all workloads.
func (o *observer) all() map[string]sight {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.seen)
}

// until waits until the observed state meets a condition.
func (o *observer) until(ctx context.Context, condition func(map[string]sight) bool) error {
	for {
		o.mu.Lock()
		seen, changed := maps.Clone(o.seen), o.changed
		o.mu.Unlock()
		if condition(seen) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look reads a workload. A rollout is complete when `kubectl rollout status` says so.
func look(obj any) (name string, now sight) {
	switch w := obj.(type) {
	case *appsv1.Deployment:
		pods, status := *w.Spec.Replicas, w.Status
		return "deployment/" + w.Name, sight{
			generation: w.Generation, revision: programs.Revision(&w.Spec.Template), pods: pods,
			complete: status.ObservedGeneration == w.Generation && status.Replicas == pods &&
				status.UpdatedReplicas == pods && status.AvailableReplicas == pods,
		}
	case *appsv1.StatefulSet:
		pods, status := *w.Spec.Replicas, w.Status
		return "statefulset/" + w.Name, sight{
			generation: w.Generation, revision: programs.Revision(&w.Spec.Template), pods: pods,
			complete: status.ObservedGeneration == w.Generation && status.UpdatedReplicas == pods && status.AvailableReplicas == pods,
		}
	case *appsv1.DaemonSet:
		pods, status := w.Status.DesiredNumberScheduled, w.Status
		return "daemonset/" + w.Name, sight{
			generation: w.Generation, revision: programs.Revision(&w.Spec.Template), pods: pods,
			complete: status.ObservedGeneration == w.Generation && pods > 0 &&
				status.UpdatedNumberScheduled == pods && status.NumberAvailable == pods,
		}
	case *batchv1.CronJob:
		return "cronjob/" + w.Name, sight{
			generation: w.Generation, revision: programs.Revision(&w.Spec.JobTemplate.Spec.Template), complete: true,
		}
	default:
		return fmt.Sprintf("%T", obj), sight{}
	}
}
