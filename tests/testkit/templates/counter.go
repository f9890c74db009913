// Package templates counts how often the pod templates of workloads are written. The generation of an object does not show that: that of a
// Deployment also grows when its annotations are written.
package templates

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/tests/testkit/running"
)

// watchPatience is how long the watch may be behind.
const watchPatience = time.Minute

// Counter counts the writes of the pod templates in a namespace. Use Watch to create one.
type Counter struct {
	client    kubernetes.Interface
	namespace string
	factory   informers.SharedInformerFactory
	stop      context.CancelFunc

	mu   sync.Mutex
	seen map[string]state // by "deployment/web"
	// gone are the resourceVersions with which workloads were deleted.
	gone map[string]uint64
}

// state is the last seen state of a workload.
type state struct {
	version  uint64
	template string
	writes   int64
}

// Watch returns a Counter, which counts until Stop is called.
func Watch(ctx context.Context, client kubernetes.Interface, namespace string) (*Counter, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &Counter{
		client: client, namespace: namespace, stop: stop, seen: make(map[string]state), gone: make(map[string]uint64),
		factory: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace)),
	}
	apps, batch := c.factory.Apps().V1(), c.factory.Batch().V1()
	for _, informer := range []cache.SharedIndexInformer{
		apps.Deployments().Informer(), apps.StatefulSets().Informer(), apps.DaemonSets().Informer(), batch.CronJobs().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: c.see, UpdateFunc: func(_, obj any) { c.see(obj) }, DeleteFunc: c.forget,
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("watching the workloads: %w", err)
		}
	}
	c.factory.Start(ctx.Done())
	for _, synced := range c.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			c.Stop()
			return nil, errors.New("watching the workloads: it ended before they were listed")
		}
	}
	return c, nil
}

// Stop ends the counting.
func (c *Counter) Stop() {
	c.stop()
	c.factory.Shutdown()
}

// Writes returns how often the template of each workload was written, by a key such as "deployment/web". It is 1 for a
// workload that was only created.
func (c *Counter) Writes(ctx context.Context) (map[string]int64, error) {
	now, err := c.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the workloads: %w", err)
	}
	ctx, stop := running.WithTimeout(ctx, watchPatience)
	defer stop()
	var writes map[string]int64
	err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		writes = make(map[string]int64, len(now))
		for key, version := range now {
			switch {
			case c.seen[key].version >= version:
				writes[key] = c.seen[key].writes
			case c.gone[key] < version: // If it is not behind, the workload was deleted after it was listed.
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the watch: %w", context.Cause(ctx))
	}
	return writes, nil
}

// Seen is [Counter.Writes] as far as the watch has come. It asks the API server nothing, so it is for waiting: what has been written and not seen yet
// is not in it.
func (c *Counter) Seen() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := make(map[string]int64, len(c.seen))
	for key, s := range c.seen {
		writes[key] = s.writes
	}
	return writes
}

// list returns the resourceVersions of the workloads that currently exist. It asks for all kinds at once: the API server answers from a cache that
// must be as new as the newest write of anything, and waits up to a tenth of a second until that of a kind is.
func (c *Counter) list(ctx context.Context) (map[string]uint64, error) {
	apps, batch, all := c.client.AppsV1(), c.client.BatchV1(), metav1.ListOptions{}
	requests := []func() (runtime.Object, error){
		func() (runtime.Object, error) { return apps.Deployments(c.namespace).List(ctx, all) },
		func() (runtime.Object, error) { return apps.StatefulSets(c.namespace).List(ctx, all) },
		func() (runtime.Object, error) { return apps.DaemonSets(c.namespace).List(ctx, all) },
		func() (runtime.Object, error) { return batch.CronJobs(c.namespace).List(ctx, all) },
	}
	lists, failed := make([]runtime.Object, len(requests)), make([]error, len(requests))
	var listing sync.WaitGroup
	for i, request := range requests {
		listing.Go(func() { lists[i], failed[i] = request() })
	}
	listing.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	versions := make(map[string]uint64)
	for _, list := range lists {
		err := meta.EachListItem(list, func(object runtime.Object) error {
			if key, version, _, ok := read(object); ok {
				versions[key] = version
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return versions, nil
}

func (c *Counter) see(obj any) {
	key, version, template, ok := read(obj)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen[key]
	if s.template != template {
		s.writes++
	}
	s.version, s.template = version, template
	c.seen[key] = s
}

func (c *Counter) forget(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if key, version, _, ok := read(obj); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.seen, key)
		c.gone[key] = version
	}
}

// read returns the key of a workload, its resourceVersion, and its template as a text.
func read(obj any) (key string, version uint64, template string, ok bool) {
	var of metav1.ObjectMeta
	var pod corev1.PodTemplateSpec
	switch o := obj.(type) {
	case *appsv1.Deployment:
		key, of, pod = "deployment/", o.ObjectMeta, o.Spec.Template
	case *appsv1.StatefulSet:
		key, of, pod = "statefulset/", o.ObjectMeta, o.Spec.Template
	case *appsv1.DaemonSet:
		key, of, pod = "daemonset/", o.ObjectMeta, o.Spec.Template
	case *batchv1.CronJob:
		key, of, pod = "cronjob/", o.ObjectMeta, o.Spec.JobTemplate.Spec.Template
	default:
		return "", 0, "", false
	}
	version, err := strconv.ParseUint(of.ResourceVersion, 10, 64)
	encoded, encodingErr := pod.Marshal()
	return key + of.Name, version, string(encoded), err == nil && encodingErr == nil
}
