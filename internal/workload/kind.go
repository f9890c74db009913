package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of workload: all that differs from the others.
type Kind struct {
	// Name is the lower-case singular, as kubectl takes it and as outcomes name it.
	Name string
	// APIVersion and Title are those of the object, for Kubernetes Events.
	APIVersion, Title string
	// Resource is the plural in the API, for messages about permissions.
	Resource string
	// plural is the same without the group, of a kind that comes from configuration. Empty: it is another one.
	plural string
	// Component is the folder under deploy/components that grants the permissions on a kind whose CRD may be installed and removed at any time.
	// Empty: the API server always serves the kind, and deploy/base grants them.
	Component string
	// Manifest is what under deploy grants the permissions, if neither Component nor deploy/base does.
	Manifest string
	// Example is an empty object of the kind.
	Example runtime.Object
	// client returns what lists, watches and patches the objects in a namespace.
	client func(Clients, string) Objects
	// read returns what all kinds have in common, and false for an object of another kind.
	read func(runtime.Object) (parts, bool)
	// template is the JSON pointer of the pod template in the object.
	template string
	// strategy is how the pods are replaced.
	strategy strategy
}

// parts are what all kinds have in common.
type parts struct {
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	progress Progress
	// serving says that there are available pods of the template, and none of an earlier one.
	serving bool
	// borrows says that the workload has no valid pod template of its own. Runs is then the workload whose template it runs the pods of, zero if that
	// is none that can be rolled, and observes is the generation of that one which its controller has observed.
	borrows  bool
	runs     Key
	observes int64
	// restarts says that pods are replaced without a change of the template, and restartAt is what the last such restart wrote, empty if there
	// was none. Touched is the time of the newest write of anyone, also of the status, by the API server's clock, to the second.
	restarts  bool
	restartAt string
	touched   time.Time
	// aborted says that the rollout of the template was aborted, by a person or an analysis, which a change of the template would override.
	// Unaborted are tests by which such a change fails if that has happened since.
	aborted   bool
	unaborted []operation
	// suspended says that no pods are started until someone takes that back. They then read what there is by then.
	suspended bool
	// starts says that a roll starts pods beside the existing ones.
	starts bool
	// selector finds its pods. Nil: they cannot be found by one.
	selector *metav1.LabelSelector
	// deaf says that what its annotations ask for does not count.
	deaf bool
	// target has what only an object of a kind that comes from configuration has. Nil: it is another one.
	target *targetParts
	// standsFor is the workload whose manifest this one keeps. Zero: it keeps none.
	standsFor Key
}

// Objects returns the client of the workloads of this kind in a namespace.
func (k Kind) Objects(c Clients, namespace string) Objects { return k.client(c, namespace) }

// Restore returns the patch of a workload that StandsFor another one: it creates that one if it does not exist. If another workload of the name
// keeps the manifest meanwhile, the patch changes nothing. If the other one exists as it was, the patch abandons it only if abandons is true:
// the API server may have a deletion of it still to carry out that was sent by an actuator that has ended.
func (k Kind) Restore(w *Workload, abandons bool) Patch {
	return Patch{restores: types.UID(w.ID.UID), abandons: abandons}
}

// specTemplate is where most kinds have the pod template.
const specTemplate = "/spec/template"
