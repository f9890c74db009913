package testbed

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/keyturn/keyturn/tests/testkit/running"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "testbed"

// RBACKinds returns the kinds that give a program its identity and permissions, and that start nothing.
func RBACKinds() []string {
	return []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
}

// Apply applies all objects of YAML files, and of the .yaml and .yml files in folders, like [ControlPlane.ApplyYAML].
func (cp *ControlPlane) Apply(ctx context.Context, paths ...string) error {
	return cp.ApplyKinds(ctx, nil, paths...)
}

// ApplyKinds is like [ControlPlane.Apply], but only for objects of the given kinds, such as [RBACKinds].
func (cp *ControlPlane) ApplyKinds(ctx context.Context, kinds []string, paths ...string) error {
	objects, err := readManifestFiles(paths)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return cp.apply(ctx, selectKinds(objects, kinds))
}

// ApplyYAML applies the documents of YAML server-side, as the admin, with the field manager "testbed": namespaces first, then
// custom resource definitions, whose kinds it waits for, then the others in their order. If there are kinds, only objects of
// these are applied. Namespaced objects without a namespace go to "default". It stops at the first error.
func (cp *ControlPlane) ApplyYAML(ctx context.Context, r io.Reader, kinds ...string) error {
	objects, err := ReadManifests(r)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return cp.apply(ctx, selectKinds(objects, kinds))
}

func (cp *ControlPlane) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(cp.config)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	a := applier{
		client: client,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(cp.client.Discovery())),
	}
	for _, object := range objects {
		if err := a.apply(ctx, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func (a applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	mapping, err := a.mapping(ctx, object)
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		client = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	// Force conflicts: a test that applies over its own changes intends that.
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := client.Apply(ctx, object.GetName(), object, options); err != nil {
		return err
	}
	if object.GetKind() == crdKind {
		return a.waitEstablished(ctx, client, object.GetName())
	}
	return nil
}

// applyPatience is how long Apply waits until the API server knows a kind.
const applyPatience = 30 * time.Second

// mapping finds the resource of an object. It retries an unknown kind, because a custom resource definition appears in discovery a moment
// after it is established, and any other error: on a busy machine a request may run into a timeout.
func (a applier) mapping(ctx context.Context, object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	ctx, stop := running.WithTimeout(ctx, applyPatience)
	defer stop()
	var mapping *meta.RESTMapping
	var last error
	gvk := object.GroupVersionKind()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		mapping, last = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if last != nil {
			a.mapper.Reset()
		}
		return last == nil, nil
	})
	if err != nil {
		return nil, cmp.Or(last, context.Cause(ctx))
	}
	return mapping, nil
}

func (a applier) waitEstablished(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	ctx, stop := running.WithTimeout(ctx, applyPatience)
	defer stop()
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var crd *unstructured.Unstructured
		crd, last = client.Get(ctx, name, metav1.GetOptions{})
		return last == nil && isEstablished(crd), nil
	})
	if err != nil {
		return fmt.Errorf("wait until it is established: %w", cmp.Or(last, context.Cause(ctx)))
	}
	return nil
}

func isEstablished(crd *unstructured.Unstructured) bool {
	// An error means that the list is null: there are no conditions yet.
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}
