package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of workload. It has everything that differs between kinds.
type Kind struct {
	// Name is the lower-case singular, as kubectl takes it and as outcomes name it.
	Name string
	// APIVersion and Title are those of the object, for Kubernetes Events.
	APIVersion, Title string
	// Resource is the plural in the API, for messages about permissions.
	Resource string
	// plural is Resource without the group, for a kind that comes from configuration. It is empty for all other kinds.
	plural string
	// Custom says that the CRD of the kind may come and go. Otherwise it is always served.
	Custom bool
	// Manifest is what grants the permissions. Empty means deploy/base/rbac.yaml.
	Manifest string
	// Example is an empty object of the kind.
	Example runtime.Object
	// client returns what lists, watches and patches the objects in a namespace.
	client func(Clients, string) Objects
	// read returns the parts of an object, and false if the object is of another kind.
	read func(runtime.Object) (parts, bool)
	// template is the JSON pointer of the pod template in the object.
	template string
	// strategy is how the pods are replaced.
	strategy strategy
	// countsChanges says that metadata.generation rises with each change of the spec: objects of one generation have the same pod template.
	countsChanges bool
}

// parts has what all kinds have in common.
type parts struct {
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	progress Progress
	// serving says that pods of the current template are available, and that none of an earlier one are left.
	serving bool
	// usesOtherTemplate says that the workload has no valid pod template of its own. runs is then the workload whose template its pods have, or
	// zero if that cannot be rolled, and observes is the generation of that workload that this one's controller has observed.
	usesOtherTemplate bool
	runs              Key
	observes          int64
	// selector selects the pods. It is nil if no selector finds them.
	selector *metav1.LabelSelector
	// reads, exclude and problem are of a target: what the object reads beside its template, the sources that the configuration ignores, and what is
	// wrong with the template.
	reads   []Reference
	exclude []rule
	problem error
	kindState
}

// kindState is what only workloads of some kinds have.
type kindState struct {
	// Suspended says that no pods are started until someone resumes the workload. The pods then read what is current at that time.
	Suspended bool
	// Deaf says that the annotations of the workload are ignored: OptIn is empty.
	Deaf bool
	// StandsFor is the workload that is being recreated and whose manifest this one keeps. It is zero for an ordinary workload.
	StandsFor Key
	// Aborted says that the rollout of the template was aborted, by a person or an analysis. A change of the template would override that.
	// unaborted are tests that make such a change fail if the rollout has been aborted since.
	Aborted   bool
	unaborted []operation
	// starts says that a roll starts pods in addition to the existing ones.
	starts bool
	// restarts says that pods are replaced without a change of the template, and restartAt is what the last such restart wrote, empty if there
	// was none. lastWrite is the time of the newest write by anyone, the status included, by the API server's clock, to the second.
	restarts  bool
	restartAt string
	lastWrite time.Time
	// target has what only objects of kinds from configuration have. It is nil for all others.
	target *targetParts
}

// targetParts has the parts that only objects of targets have.
type targetParts struct {
	// trigger is the value of the trigger, if that is a field. missing are the JSON pointers of objects that are missing on the path to it, the
	// outermost first.
	trigger any
	missing []string
	// triggered says that the trigger is a fixed text, and that the text is still there.
	triggered bool
	// owned is targetStatus.Owned. said is the progress according to the object's own status, regardless of what it owns.
	owned bool
	said  Progress
}

// Objects returns the client for the workloads of this kind in a namespace.
func (k Kind) Objects(c Clients, namespace string) Objects { return k.client(c, namespace) }

// Restore returns a patch that creates the workload that w stands for (see Workload.StandsFor), unless that exists. If it exists unchanged, w goes
// only if abandons is true: the API server may still carry out a deletion that an earlier actuator has sent.
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
