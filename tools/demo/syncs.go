package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

// syncSight is the state of an ExternalSecret at a time, as the API server reports it.
type syncSight struct {
	at time.Time
	// forced is the annotation that forces a sync, and synced identifies the last sync in its status.
	forced, synced string
}

// syncs records every state of the ExternalSecrets in the namespace.
type syncs struct {
	mu   sync.Mutex
	seen map[string][]syncSight
}

// observeSyncs watches until stop is called.
func observeSyncs(client dynamic.Interface) (o *syncs, stop func(), err error) {
	o = &syncs{seen: map[string][]syncSight{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	_, err = factory.ForResource(externalsecret.ExternalSecrets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: o.see, UpdateFunc: func(_, now any) { o.see(now) },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watching the ExternalSecrets: %w", err)
	}
	done := make(chan struct{})
	stop = sync.OnceFunc(func() {
		close(done)
		factory.Shutdown()
	})
	factory.Start(done)
	return o, stop, nil
}

func (o *syncs) see(obj any) {
	at := time.Now()
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	// An error means that it is no string: External Secrets has not written it yet.
	synced, _, _ := unstructured.NestedString(object.Object, "status", "syncedResourceVersion")
	forced, _ := externalsecret.ParseForceSync(object.GetAnnotations()[externalsecret.AnnotationForceSync])
	o.mu.Lock()
	defer o.mu.Unlock()
	name := object.GetName()
	o.seen[name] = append(o.seen[name], syncSight{at: at, forced: forced.Event, synced: synced})
}

// all returns every state of an ExternalSecret so far.
func (o *syncs) all(name string) []syncSight {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen[name])
}

// known returns the names of the ExternalSecrets that have synced at least once.
func (o *syncs) known() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	names := slices.Sorted(maps.Keys(o.seen))
	return slices.DeleteFunc(names, func(name string) bool { return o.seen[name][len(o.seen[name])-1].synced == "" })
}

// syncTimes returns when an ExternalSecret was forced to sync for an event, and when it then synced. A time that was not seen is zero.
func syncTimes(seen []syncSight, event string) (forced, synced time.Time) {
	i := slices.IndexFunc(seen, func(s syncSight) bool { return s.forced == event })
	if i < 0 {
		return time.Time{}, time.Time{}
	}
	forced, from := seen[i].at, seen[i].synced
	for _, s := range seen[i+1:] {
		if s.synced != from {
			return forced, s.at
		}
	}
	return forced, time.Time{}
}

// syncCount returns how often an ExternalSecret synced since a time.
func syncCount(seen []syncSight, since time.Time) (count int) {
	for i := 1; i < len(seen); i++ {
		if seen[i].synced != seen[i-1].synced && seen[i].at.After(since) {
			count++
		}
	}
	return count
}
