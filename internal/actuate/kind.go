package actuate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// kind is a kind of workload. A new one is one more file with one more of these, and a line in kinds.
type kind struct {
	// name is the lower-case singular, as kubectl takes it and as outcomes and annotations say it.
	name string
	// apiVersion and title are those of the object, for Kubernetes Events.
	apiVersion, title string
	// resource is the plural in the API, for messages about rights.
	resource string
	example  runtime.Object
	client   func(kubernetes.Interface, string) objectClient
	// read gives what is common to all workloads of an object of this kind; false for an object of another.
	read func(runtime.Object) (parts, bool)
	// template wraps a change of the pod template for a merge patch of the object.
	template func(podTemplate map[string]any) map[string]any
}

// parts are what is common to all workloads.
type parts struct {
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	progress progress
}

var kinds = []kind{deployments, statefulSets, daemonSets, cronJobs}

// Kinds lists the kinds of workloads that are rolled.
func Kinds() []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

func kindNamed(name string) (kind, bool) {
	for _, k := range kinds {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// state is how far a rollout is.
type state int

const (
	// stateProgressing: pods are still to be replaced.
	stateProgressing state = iota
	// stateComplete: all pods are of the current template, and ready.
	stateComplete
	// stateFailed: the workload's controller has given up.
	stateFailed
	// stateWaiting: somebody has told the workload's controller to wait, and nothing happens until it is told otherwise.
	stateWaiting
)

// progress is how far the rollout of a workload's current template is, by its own status.
type progress struct {
	state state
	// message says more, for people.
	message string
	// pods is how many pods the workload is to have. A rollout of none takes no place among the rollouts in progress.
	pods int32
}

// objectClient reads and patches the workloads of one kind in one namespace.
type objectClient interface {
	get(ctx context.Context, name string) (runtime.Object, error)
	list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	patch(ctx context.Context, name string, patch []byte) (runtime.Object, error)
}

// typedClient is what the clients of client-go have in common.
type typedClient[Object, List runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (Object, error)
	List(ctx context.Context, options metav1.ListOptions) (List, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (Object, error)
}

// fieldManager is the name under which the actuator's annotations stand in managedFields.
const fieldManager = "keyturn"

type typedObjects[Object, List runtime.Object] struct {
	client typedClient[Object, List]
}

// objects makes an objectClient of a client of client-go.
func objects[Object, List runtime.Object](client typedClient[Object, List]) objectClient {
	return typedObjects[Object, List]{client: client}
}

func (o typedObjects[Object, List]) get(ctx context.Context, name string) (runtime.Object, error) {
	return o.client.Get(ctx, name, metav1.GetOptions{})
}

func (o typedObjects[Object, List]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return o.client.List(ctx, options)
}

func (o typedObjects[Object, List]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return o.client.Watch(ctx, options)
}

func (o typedObjects[Object, List]) patch(ctx context.Context, name string, patch []byte) (runtime.Object, error) {
	return o.client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
}

// specTemplate is the place of the pod template in most kinds.
func specTemplate(podTemplate map[string]any) map[string]any {
	return map[string]any{"template": podTemplate}
}
