package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/tests/programs"
)

// sight is the latest state of a workload, as the API server reports it.
type sight struct {
	// writes counts how often the pod template was written, and so rolled. The generation does not: that of a Deployment also grows with a write of
	// its annotations, such as a record.
	writes             int64
	template, revision string
	// pods is the desired number of pods.
	pods int32
	// complete is whether the rollout of this template is complete: all pods are new, and ready.
	complete bool
	// patched is when this template was first seen, and ready when it was first seen complete.
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
	now.writes, now.patched, now.ready = before.writes, before.patched, before.ready
	if !known || before.template != now.template {
		now.writes, now.patched, now.ready = before.writes+1, time.Now(), time.Time{}
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

// textOf returns a pod template as text, to compare it with.
func textOf(template *corev1.PodTemplateSpec) string {
	text, err := json.Marshal(template)
	if err != nil {
		panic(err) // It came as JSON.
	}
	return string(text)
}

// look reads a workload. A rollout is complete when `kubectl rollout status` says so.
func look(obj any) (name string, now sight) {
	switch w := obj.(type) {
	case *appsv1.Deployment:
		pods, status := *w.Spec.Replicas, w.Status
		return "deployment/" + w.Name, sight{
			template: textOf(&w.Spec.Template), revision: programs.Revision(&w.Spec.Template), pods: pods,
			complete: status.ObservedGeneration == w.Generation && status.Replicas == pods &&
				status.UpdatedReplicas == pods && status.AvailableReplicas == pods,
		}
	case *appsv1.StatefulSet:
		pods, status := *w.Spec.Replicas, w.Status
		return "statefulset/" + w.Name, sight{
			template: textOf(&w.Spec.Template), revision: programs.Revision(&w.Spec.Template), pods: pods,
			complete: status.ObservedGeneration == w.Generation && status.UpdatedReplicas == pods && status.AvailableReplicas == pods,
		}
	case *appsv1.DaemonSet:
		pods, status := w.Status.DesiredNumberScheduled, w.Status
		return "daemonset/" + w.Name, sight{
			template: textOf(&w.Spec.Template), revision: programs.Revision(&w.Spec.Template), pods: pods,
			complete: status.ObservedGeneration == w.Generation && pods > 0 &&
				status.UpdatedNumberScheduled == pods && status.NumberAvailable == pods,
		}
	case *batchv1.CronJob:
		return "cronjob/" + w.Name, sight{
			template: textOf(&w.Spec.JobTemplate.Spec.Template), revision: programs.Revision(&w.Spec.JobTemplate.Spec.Template), complete: true,
		}
	default:
		return fmt.Sprintf("%T", obj), sight{}
	}
}
