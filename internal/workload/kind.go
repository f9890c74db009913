package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Kind is a kind of workload. A new one is one more file with one more of these, and a line in kinds.
type Kind struct {
	// Name is the lower-case singular, as in kubectl, outcomes and annotations.
	Name string
	// APIVersion and title are the apiVersion and kind of the object, for Kubernetes Events.
	APIVersion, Title string
	// Resource is the plural in the API, for messages about permissions.
	Resource string
	Example  runtime.Object
	client   func(Clients, string) Objects
	// read returns the parts of an object of this kind, and false for an object of another kind.
	read func(runtime.Object) (parts, bool)
	// template wraps a change of the pod template for a merge patch of the object's spec.
	template func(podTemplate map[string]any) map[string]any
	strategy strategy
}

// Clients are the clients of the API server that the kinds use.
type Clients struct {
	Typed kubernetes.Interface
}

// Objects returns the client of the workloads of this kind in a namespace.
func (k Kind) Objects(c Clients, namespace string) Objects { return k.client(c, namespace) }

// parts are the parts that all kinds of workloads have.
type parts struct {
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	progress Progress
}

// Kinds is a list of kinds.
type Kinds []Kind

// BuiltIn returns the kinds that are part of Kubernetes.
func BuiltIn() Kinds { return Kinds{deployments, statefulSets, daemonSets, cronJobs} }

// Names returns the names of the kinds.
func (t Kinds) Names() []string {
	names := make([]string, 0, len(t))
	for _, k := range t {
		names = append(names, k.Name)
	}
	return names
}

// Named returns the kind of the name, and false if there is none.
func (t Kinds) Named(name string) (Kind, bool) {
	for _, k := range t {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// State is how far a rollout is.
type State int

const (
	// Progressing means that pods still have to be replaced.
	Progressing State = iota
	// Complete means that all pods have the current template and are ready.
	Complete
	// Failed means that the workload's controller has given up.
	Failed
	// Waiting means that the rollout is paused, and continues only when somebody resumes it.
	Waiting
)

// Progress is how far the rollout of a workload's current template is, according to its status.
type Progress struct {
	State State
	// Message has details for people.
	Message string
	// Pods is the desired number of pods. A rollout without pods does not count against the limit of rollouts.
	Pods int32
}

// Objects reads and patches the workloads of one kind in one namespace.
type Objects interface {
	Get(ctx context.Context, name string) (runtime.Object, error)
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, p Patch) (runtime.Object, error)
}

// typedClient is the common part of client-go's clients.
type typedClient[Object, List runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (Object, error)
	List(ctx context.Context, options metav1.ListOptions) (List, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (Object, error)
}

// FieldManager is the actuator's name in managedFields.
const FieldManager = "keyturn"

type typedObjects[Object, List runtime.Object] struct {
	client typedClient[Object, List]
}

// typed returns Objects for a client of client-go.
func typed[Object, List runtime.Object](client typedClient[Object, List]) Objects {
	return typedObjects[Object, List]{client: client}
}

func (o typedObjects[Object, List]) Get(ctx context.Context, name string) (runtime.Object, error) {
	return o.client.Get(ctx, name, metav1.GetOptions{})
}

func (o typedObjects[Object, List]) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return o.client.List(ctx, options)
}

func (o typedObjects[Object, List]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return o.client.Watch(ctx, options)
}

func (o typedObjects[Object, List]) Patch(ctx context.Context, name string, p Patch) (runtime.Object, error) {
	return o.client.Patch(ctx, name, p.Type, p.Body, metav1.PatchOptions{FieldManager: FieldManager})
}

// specTemplate wraps a pod template at spec.template, where most kinds have it.
func specTemplate(podTemplate map[string]any) map[string]any {
	return map[string]any{"template": podTemplate}
}
