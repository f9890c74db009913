package main

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// endings tells a floor with a limit when a rollout is complete. This is all that the floor knows about the Deployments while it
// runs.
type endings struct {
	mu sync.Mutex
	// complete has the newest generation that was seen rolled out, by namespace and name.
	complete map[string]int64
	// waiting has channels that are closed when a later generation is rolled out.
	waiting map[string]chan struct{}
}

func newEndings() *endings {
	return &endings{complete: make(map[string]int64), waiting: make(map[string]chan struct{})}
}

// informer returns the informer that feeds e. The caller runs it.
func (e *endings) informer(client kubernetes.Interface) (cache.SharedIndexInformer, error) {
	informer := informers.NewSharedInformerFactory(client, 0).Apps().V1().Deployments().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: e.see, UpdateFunc: func(_, after any) { e.see(after) }})
	if err != nil {
		return nil, fmt.Errorf("watching the deployments: %w", err)
	}
	return informer, nil
}

func (e *endings) see(obj any) {
	deployment, ok := obj.(*appsv1.Deployment)
	if !ok || !rolledOut(deployment) {
		return
	}
	key := deployment.Namespace + "/" + deployment.Name
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete[key] = deployment.Generation
	if waiting := e.waiting[key]; waiting != nil {
		close(waiting)
		delete(e.waiting, key)
	}
}

// wait waits until the rollout of a patched Deployment is complete, or the context ends.
func (e *endings) wait(ctx context.Context, patched *appsv1.Deployment) {
	for {
		news := e.news(patched.Namespace+"/"+patched.Name, patched.Generation)
		if news == nil {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// news returns a channel that is closed when the next rollout of a Deployment ends, or nil if that of the generation has
// ended.
func (e *endings) news(key string, generation int64) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.complete[key] >= generation {
		return nil
	}
	if e.waiting[key] == nil {
		e.waiting[key] = make(chan struct{})
	}
	return e.waiting[key]
}

// rolledOut reports whether the rollout of a Deployment is complete, by the same rules as `kubectl rollout status` and
// Keyturn.
func rolledOut(deployment *appsv1.Deployment) bool {
	pods, status := int32(1), deployment.Status
	if deployment.Spec.Replicas != nil {
		pods = *deployment.Spec.Replicas
	}
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == pods && status.Replicas == pods && status.AvailableReplicas == pods
}
