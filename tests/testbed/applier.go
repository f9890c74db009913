package testbed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/keyturn/keyturn/tests/testkit/running"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "testbed"

// applier applies objects, and none again that is as it has left it: each test applies the same roles and admission policies, and the API server
// compiles all expressions of a policy that is applied, also if nothing of it changes.
type applier struct {
	client   dynamic.Interface
	metadata metadata.Interface
	// mapper knows the kinds that the API server served when it was asked last.
	mapper *restmapper.DeferredDiscoveryRESTMapper

	mu      sync.Mutex
	applied map[place]state
}

// place is where an object is. Its namespace is empty if it is in none.
type place struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// state is how an object was when it had been applied.
type state struct {
	manifest [sha256.Size]byte
	uid      types.UID
	version  string
}

func newApplier(config *rest.Config, kinds discovery.DiscoveryInterface) (*applier, error) {
	a := &applier{
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)),
		applied: map[place]state{},
	}
	var err error
	if a.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	a.metadata, err = metadata.NewForConfig(config)
	return a, err
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	content, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	mapping, err := a.mapping(ctx, object)
	if err != nil {
		return err
	}
	at := place{resource: mapping.Resource, name: object.GetName()}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		at.namespace = cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
	}
	manifest := sha256.Sum256(content)
	if a.isApplied(ctx, at, manifest) {
		return nil
	}
	client := a.client.Resource(at.resource).Namespace(at.namespace)
	// Force conflicts: a test that applies over its own changes intends that.
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	now, err := client.Apply(ctx, at.name, object, options)
	if err != nil {
		return err
	}
	if object.GetKind() == crdKind {
		if now, err = a.waitEstablished(ctx, client, at.name); err != nil {
			return err
		}
		// What the mapper knows of the kind, if anything, is of an earlier definition.
		a.mapper.Reset()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied[at] = state{manifest: manifest, uid: now.GetUID(), version: versionOf(at, now)}
	return nil
}

// isApplied reports whether an object is as it was when this manifest had been applied.
func (a *applier) isApplied(ctx context.Context, at place, manifest [sha256.Size]byte) bool {
	a.mu.Lock()
	before, known := a.applied[at]
	a.mu.Unlock()
	if !known || before.manifest != manifest {
		return false
	}
	now, err := a.metadata.Resource(at.resource).Namespace(at.namespace).Get(ctx, at.name, metav1.GetOptions{})
	return err == nil && now.DeletionTimestamp == nil && now.UID == before.uid && versionOf(at, now) == before.version
}

// versionOf returns what changes with each write of an object. Of a definition it changes with its spec alone: the API server itself goes on to write
// the status of a kind that is established.
func versionOf(at place, object metav1.Object) string {
	if at.resource.GroupResource() == definitions.GroupResource() {
		return strconv.FormatInt(object.GetGeneration(), 10)
	}
	return object.GetResourceVersion()
}

// applyPatience is how long Apply waits until the API server knows a kind.
const applyPatience = 30 * time.Second

// mapping finds the resource of an object. It retries an unknown kind, because a custom resource definition appears in discovery a moment
// after it is established, and any other error: on a busy machine a request may run into a timeout.
func (a *applier) mapping(ctx context.Context, object *unstructured.Unstructured) (*meta.RESTMapping, error) {
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

// waitEstablished waits until the API server serves a kind, and returns its definition.
func (a *applier) waitEstablished(ctx context.Context, client dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	ctx, stop := running.WithTimeout(ctx, applyPatience)
	defer stop()
	var definition *unstructured.Unstructured
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		definition, last = client.Get(ctx, name, metav1.GetOptions{})
		return last == nil && isEstablished(definition), nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait until it is established: %w", cmp.Or(last, context.Cause(ctx)))
	}
	return definition, nil
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
