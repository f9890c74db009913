package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownerOf returns the controller of an object, if that is rolled instead.
func (r Reading) ownerOf(meta *metav1.ObjectMeta) (Key, bool) {
	controller := metav1.GetControllerOfNoCopy(meta)
	if controller == nil || len(r.Owners) == 0 {
		return Key{}, false
	}
	name, known := r.Owners[schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind()]
	return Key{Kind: name, Namespace: meta.Namespace, Name: controller.Name}, known
}

// ownedProgress returns how far a workload is that this one is the controller of, and the ServingSince of that. It is unknown until the other has got
// the annotations of the last roll, if it gets them.
func (w *Workload) ownedProgress(owned *Workload) (Progress, string) {
	if w.target == nil || !w.target.owned || w.Revision == "" || owned.Revision == w.Revision {
		return owned.Progress, owned.ServingSince
	}
	p := Progress{Pods: owned.Progress.Pods}.unobserved()
	return p.is(Progressing, owned.ID.String()+" does not have the change yet"), ""
}

// lend has what the annotations of a workload say, and what the pods read that it is the controller of, count for this one. Where those of this one
// say none, nothing else counts; and what the other says none of, does not.
func (w *Workload) lend(from *Workload) {
	switch {
	case w.owned:
		w.lent = w.lent.and(from.lent)
	case !from.owned || !w.OptIn.none:
		w.OptIn = w.OptIn.and(from.lent)
	}
	if from.owned && !from.lent.none {
		w.Refs = merged(w.Refs, from.Refs)
	}
}

// Unowned returns the workload as it would be if it had no controller that is rolled instead.
func (w *Workload) Unowned() *Workload {
	if !w.owned {
		return w
	}
	unowned := *w
	unowned.Runs, unowned.owned, unowned.OptIn, unowned.lent = Key{}, false, w.lent, OptIn{}
	return &unowned
}
