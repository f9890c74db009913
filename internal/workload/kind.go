package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of workload, with all its differences from other kinds.
type Kind struct {
	// Name is the lower-case singular, as in kubectl and in outcomes.
	Name string
	// APIVersion and Title are the API version and kind of the object, for Kubernetes Events.
	APIVersion, Title string
	// Resource is the plural in the API with the group, for messages about permissions.
	Resource string
	// plural is Resource without the group, for a kind from configuration. It is empty for other kinds.
	plural string
	// Custom says that the kind has a CRD that may come and go. Otherwise it is always served.
	Custom bool
	// Manifest is the file that grants the permissions. Empty means deploy/base/rbac.yaml.
	Manifest string
	// Example is an empty object of the kind.
	Example runtime.Object
	// client returns the client for the objects in a namespace.
	client func(Clients, string) Objects
	// read returns the parts of an object, and false if the object is of another kind.
	read func(runtime.Object) (parts, bool)
	// template is the JSON pointer of the pod template in the object.
	template string
	// strategy determines how the pods are replaced.
	strategy strategy
	// countsChanges says that metadata.generation rises with each change of the spec, so that a generation has only one pod template.
	countsChanges bool
}

// parts contains the common parts of all kinds.
type parts struct {
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	progress Progress
	// serving says that pods of the current template are available and no older ones are left.
	serving bool
	// usesOtherTemplate says that the workload has no valid pod template of its own. Then runs is the workload whose template its pods have, or zero
	// if that cannot be rolled, and observes is the generation of that workload that this one's controller has observed.
	usesOtherTemplate bool
	runs              Key
	observes          int64
	// selector selects the pods. It is nil if no selector does.
	selector *metav1.LabelSelector
	// reads, exclude and problem belong to a target: the sources that the object reads outside its template, the sources that the configuration
	// ignores, and the problem of the template.
	reads   []Reference
	exclude []rule
	problem error
	kindState
}

// kindState contains the parts that exist only for some kinds.
type kindState struct {
	// Suspended says that no pods start until someone resumes the workload. They then read the current content.
	Suspended bool
	// Deaf says that the annotations of the workload are ignored: OptIn is empty.
	Deaf bool
	// StandsFor is the workload that is being recreated and whose manifest this one keeps. It is zero for an ordinary workload.
	StandsFor Key
	// Aborted says that a person or an analysis has aborted the rollout of the template. A change of the template would override that. unaborted are
	// tests that make such a change fail if the rollout was aborted meanwhile.
	Aborted   bool
	unaborted []operation
	// starts says that a roll starts pods in addition to the existing ones.
	starts bool
	// restarts says that pods are replaced without a change of the template. restartAt is the value of the last such restart, empty if there was
	// none. lastWrite is the time of the newest write by anyone, including the status, by the API server's clock, in whole seconds.
	restarts  bool
	restartAt string
	lastWrite time.Time
	// target contains the parts of objects of a kind from configuration. It is nil for other objects.
	target *targetParts
}

// targetParts contains the parts of objects of targets.
type targetParts struct {
	// trigger is the value of the trigger if that is a field. missing are the JSON pointers of missing objects on the path to it, the outermost
	// first.
	trigger any
	missing []string
	// triggered says that the trigger is a fixed text that is still there.
	triggered bool
	// owned is targetStatus.Owned. said is the progress according to the object's own status, without the workloads that it owns.
	owned bool
	said  Progress
}

// Objects returns the client for the workloads of this kind in a namespace.
func (k Kind) Objects(c Clients, namespace string) Objects { return k.client(c, namespace) }

// Restore returns a patch that creates the workload that w stands for (Workload.StandsFor), unless that exists. If that exists unchanged, w is
// removed only if abandons is true, as the API server may still carry out a deletion that an earlier leader sent.
func (k Kind) Restore(w *Workload, abandons bool) Patch {
	return Patch{restores: types.UID(w.ID.UID), abandons: abandons}
}

// specTemplate is the JSON pointer of the pod template in most kinds.
const specTemplate = "/spec/template"

// Template returns the metadata and the pod template of an object, and false for an object of another kind.
func (k Kind) Template(obj runtime.Object) (*metav1.ObjectMeta, *corev1.PodTemplateSpec, bool) {
	p, ok := k.read(obj)
	return p.meta, p.template, ok
}
