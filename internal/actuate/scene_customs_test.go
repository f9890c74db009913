//go:build !race

package actuate_test

import (
	"os"
	"path/filepath"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// customs are custom resources, whose kinds the API server may not serve for a time. No controller acts on them.
type customs struct {
	*dynamicfake.FakeDynamicClient
	s *scene

	mu      sync.Mutex
	absent  bool
	watches []watch.Interface
}

// serveCustom has the API server serve custom resources, given the kinds of their lists, for the actuators that are started from now on.
func (s *scene) serveCustom(lists map[schema.GroupVersionResource]string) *customs {
	c := &customs{s: s, FakeDynamicClient: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)}
	c.PrependReactor("patch", "*", c.patch)
	c.PrependReactor("*", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.absent, nil, notServed(action)
	})
	c.PrependWatchReactor("*", c.watch)
	s.options.Dynamic = c.FakeDynamicClient
	return c
}

// notServed is the answer of an API server that knows no such kind.
func notServed(action k8stesting.Action) error {
	return apierrors.NewNotFound(action.GetResource().GroupResource(), "")
}

// serve lets the API server serve the kinds from now on, or not. Their watches end when it does not.
func (c *customs) serve(served bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.absent = !served
	for _, watched := range c.watches {
		watched.Stop()
	}
	c.watches = nil
}

func (c *customs) watch(action k8stesting.Action) (bool, watch.Interface, error) {
	request, ok := action.(k8stesting.WatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.absent {
		return true, nil, notServed(action)
	}
	watched, err := c.Tracker().Watch(request.GetResource(), request.GetNamespace(), request.ListOptions)
	if err != nil {
		return true, nil, err
	}
	c.watches = append(c.watches, watched)
	return true, watched, nil
}

func (c *customs) patch(action k8stesting.Action) (bool, runtime.Object, error) {
	request, ok := action.(k8stesting.PatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	resource := request.GetResource()
	before, err := c.Tracker().Get(resource, request.GetNamespace(), request.GetName())
	if err != nil {
		return true, nil, err
	}
	after, err := patched(before, request.GetPatch())
	if err != nil {
		return true, nil, kube.NotApplied()
	}
	metaOf(after).SetResourceVersion(c.s.nextVersion())
	c.note(request.PatchOptions.FieldManager, before, after)
	if err := c.Tracker().Update(resource, after, request.GetNamespace()); err != nil {
		return true, nil, err
	}
	c.s.cluster.mu.Lock()
	defer c.s.cluster.mu.Unlock()
	c.s.writes = append(c.s.writes, writeOf(resource, before, after, request.GetPatch()))
	return true, after, nil
}

// put makes a custom resource of the scene's namespace, or replaces it.
func (c *customs) put(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	c.s.Helper()
	object = object.DeepCopy()
	object.SetNamespace(namespace)
	object.SetUID(types.UID("uid-" + object.GetName()))
	object.SetResourceVersion(c.s.nextVersion())
	before, err := c.Tracker().Get(resource, namespace, object.GetName())
	switch {
	case err == nil:
		object.SetManagedFields(metaOf(before).GetManagedFields())
		c.note("", before, object)
		err = c.Tracker().Update(resource, object, namespace)
	case apierrors.IsNotFound(err):
		c.note("", nil, object)
		err = c.Tracker().Create(resource, object, namespace)
	}
	testkit.Must(c.s, err)
}

// note notes who writes a custom resource. Before is nil for a new one.
func (c *customs) note(manager string, before, after runtime.Object) {
	c.s.cluster.mu.Lock()
	defer c.s.cluster.mu.Unlock()
	c.s.storage.writes(manager)
	c.s.storage.note(before, after)
}

// change changes a custom resource of the scene's namespace, as its controller or a person does.
func (c *customs) change(resource schema.GroupVersionResource, name string, how func(*unstructured.Unstructured)) {
	c.s.Helper()
	stored, err := c.Tracker().Get(resource, namespace, name)
	testkit.Must(c.s, err)
	object, ok := stored.DeepCopyObject().(*unstructured.Unstructured)
	if !ok {
		c.s.Fatalf("it is a %T", stored)
	}
	how(object)
	c.put(resource, object)
}

// rolloutResource has the Rollouts of Argo Rollouts.
var rolloutResource = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}

// serveRollout has the API server serve the Rollout web of Argo Rollouts, which rolls on secret/db, for the actuators that are started from now on.
// It is progressing unless the function, which may be nil, says something else of it.
func (s *scene) serveRollout(how func(*unstructured.Unstructured)) *customs {
	s.Helper()
	s.options.WorkloadKinds = append(workload.BuiltIn().Names(), workload.ArgoRollout().Name)
	rollouts := s.serveCustom(map[schema.GroupVersionResource]string{rolloutResource: "RolloutList"})
	reads := map[string]any{"secretRef": map[string]any{"name": "db"}}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{"name": "web", "annotations": map[string]any{workload.AnnotationRollOn: "auto"}},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "example.com/app", "envFrom": []any{reads}}}},
		}},
		"status": map[string]any{"phase": "Progressing", "observedGeneration": "1"},
	}}
	if how != nil {
		how(object)
	}
	rollouts.put(rolloutResource, object)
	return rollouts
}

// inPhase is what the controller of Rollouts says of one.
func inPhase(phase string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		object.Object["status"] = map[string]any{"phase": phase, "observedGeneration": "1"}
	}
}

// onObject gives a custom resource what an aspect gives a workload, as far as that is in its metadata.
func onObject(object *unstructured.Unstructured, aspects ...aspect) {
	made := metav1.ObjectMeta{Annotations: object.GetAnnotations()}
	for _, aspect := range aspects {
		aspect(&made, nil)
	}
	object.SetAnnotations(made.Annotations)
}

// target gives the next actuators a file of targets.
func (s *scene) target(targets string) {
	s.Helper()
	s.options.TargetsConfig = filepath.Join(s.TempDir(), "targets.yaml")
	testkit.Must(s, os.WriteFile(s.options.TargetsConfig, []byte(targets), 0o600))
}
