package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// patience is how long anything expected may take, except thousands of rollouts.
const patience = 3 * time.Minute

// observer is a watch that belongs to neither contender. It sees when a pod template is patched.
type observer struct {
	mu sync.Mutex
	// generations and observed have, by namespace and name, the generation and the observed generation.
	generations, observed map[string]int64
	// templates has the pod templates, and writes how often they were written.
	templates map[string]string
	writes    map[string]int64
	// unrecorded are the Deployments on which Keyturn has not written a record yet.
	unrecorded map[string]bool
	waits      *await
	// patience is how long anything expected may take.
	patience time.Duration
}

func makeObserver(patience time.Duration) *observer {
	return &observer{
		generations: make(map[string]int64), observed: make(map[string]int64), templates: make(map[string]string), writes: make(map[string]int64),
		unrecorded: make(map[string]bool), patience: patience,
	}
}

// await is a wait for some Deployments to be patched.
type await struct {
	// rollouts says that the wait also includes the rollouts.
	rollouts bool
	before   map[string]int64
	left     map[string]int64
	// last is when the last of them was seen.
	last time.Time
	done chan struct{}
}

func newObserver(ctx context.Context, client kubernetes.Interface, patience time.Duration) (*observer, error) {
	o := makeObserver(patience)
	informer := informers.NewSharedInformerFactory(client, 0).Apps().V1().Deployments().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.see(obj, time.Now()) },
		UpdateFunc: func(_, obj any) { o.see(obj, time.Now()) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching the deployments: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching the deployments: %w", context.Cause(ctx))
	}
	return o, nil
}

func (o *observer) see(obj any, at time.Time) {
	deployment, ok := obj.(*appsv1.Deployment)
	if !ok {
		return
	}
	key := deployment.Namespace + "/" + deployment.Name
	o.mu.Lock()
	defer o.mu.Unlock()
	o.generations[key], o.observed[key] = deployment.Generation, deployment.Status.ObservedGeneration
	if template, err := deployment.Spec.Template.Marshal(); err == nil && o.templates[key] != string(template) {
		o.templates[key] = string(template)
		o.writes[key]++
	}
	if delete(o.unrecorded, key); deployment.Annotations[annotationRecord] == "" {
		o.unrecorded[key] = true
	}
	w := o.waits
	if w == nil {
		return
	}
	if before, waited := w.left[key]; waited && o.writes[key] > before && (!w.rollouts || rolledOut(deployment)) {
		delete(w.left, key)
		w.last = at
		if len(w.left) == 0 {
			close(w.done)
		}
	}
}

// expect begins a wait for the Deployments to be patched. There is only one wait at a time.
func (o *observer) expect(keys []string) *await { return o.begin(keys, false) }

// expectRollouts is like [observer.expect], but also waits for the rollouts.
func (o *observer) expectRollouts(keys []string) *await { return o.begin(keys, true) }

func (o *observer) begin(keys []string, rollouts bool) *await {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := &await{rollouts: rollouts, before: make(map[string]int64, len(keys)), done: make(chan struct{})}
	for _, key := range keys {
		w.before[key] = o.writes[key]
	}
	w.left = maps.Clone(w.before)
	o.waits = w
	return w
}

// until returns the time from start until the last Deployment was seen patched and, if expected, rolled out.
func (o *observer) until(ctx context.Context, w *await, start time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	select {
	case <-w.done:
		return w.last.Sub(start), nil
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		what := "patched"
		if w.rollouts {
			what = "patched and rolled out"
		}
		return 0, fmt.Errorf("%d of %d deployments were not %s: %w", len(w.left), len(w.before), what, ctx.Err())
	}
}

// quiet waits until the controllers are done with every Deployment, and reports one that was patched more than once.
func (o *observer) quiet(ctx context.Context, w *await) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, o.patience, true, o.controllersDone); err != nil {
		return fmt.Errorf("waiting for the controllers: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, before := range w.before {
		if now := o.writes[key]; now != before+1 {
			return fmt.Errorf("deployment %s was patched %d times for one change", key, now-before)
		}
	}
	return nil
}

// recorded waits until Keyturn has written a record on each Deployment, which it does once and slowly.
func (o *observer) recorded(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, o.patience, true, func(context.Context) (bool, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.unrecorded) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the records: %w", err)
	}
	return nil
}

func (o *observer) controllersDone(context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, generation := range o.generations {
		if o.observed[key] < generation {
			return false, nil
		}
	}
	return true, nil
}
