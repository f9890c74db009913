package workload

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownerOf returns the controller of an object if the controller is rolled instead. It ignores the controllers of Jobs: what a target's Job
// reads or has yet to do does not concern the target's pods.
func (r Reading) ownerOf(k Kind, meta *metav1.ObjectMeta) (Key, bool) {
	controller := metav1.GetControllerOfNoCopy(meta)
	isOfPods := slices.Contains(ownable, k.Name) || k.plural != ""
	if controller == nil || len(r.Owners) == 0 || !isOfPods {
		return Key{}, false
	}
	name, known := r.Owners[schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind()]
	return Key{Kind: name, Namespace: meta.Namespace, Name: controller.Name}, known
}

// ownedProgress returns the progress and the ServingSince of a workload that w controls. If w passes on the annotations of its last roll, the
// progress is unknown until the owned workload has them.
func (w *Workload) ownedProgress(owned *Workload) (Progress, string) {
	if w.target == nil || !w.target.owned || w.Revision == "" || owned.Revision == w.Revision {
		return owned.Progress, owned.ServingSince
	}
	p := Progress{Pods: owned.Progress.Pods}.unobserved()
	return p.is(Progressing, owned.ID.String()+" does not have the change yet"), ""
}

// lend applies the opt-in of another workload to w, and also what its pods read if w controls it. If the annotations of w say none, nothing of
// the opt-in counts. If those of the other say none, nothing of the other counts if w controls it; otherwise w rolls on nothing, either.
func (w *Workload) lend(from *Workload) {
	if from.owned && from.lent.none {
		return
	}
	if w.owned {
		w.lent = w.lent.and(from.lent)
	} else {
		w.OptIn = w.OptIn.and(from.lent)
	}
	if from.owned {
		w.Refs = merged(w.Refs, from.Refs)
	}
}

// MaxOwners limits the chain of owners from a workload to the outermost one. If the chain is longer, as when owners own each other, the workload
// is rolled itself.
const MaxOwners = 8

// Owned returns the workload in the state in which its Owner is rolled instead of it.
func (w *Workload) Owned() *Workload {
	owned := *w.byItself()
	if owned.Owner == (Key{}) || owned.owned {
		return w
	}
	owned.Runs, owned.owned, owned.lent, owned.OptIn = owned.Owner, true, owned.OptIn, OptIn{}
	owned.Reverted = maps.Clone(owned.Reverted)
	return &owned
}

// Unowned returns the workload in the state in which it is rolled itself although it has an Owner, because the Owner does not
// exist, or because it owns the Owner.
func (w *Workload) Unowned() *Workload {
	unowned := *w.byItself()
	if !unowned.owned {
		return w
	}
	unowned.Runs, unowned.owned, unowned.lent, unowned.OptIn = Key{}, false, OptIn{}, unowned.lent
	unowned.Reverted = maps.Clone(unowned.Reverted)
	return &unowned
}

// IsOrphan reports whether the workload may be rolled itself although it has an Owner.
func (w *Workload) IsOrphan() bool {
	return w.Owner != (Key{}) && w.Runs == (Key{}) && !w.OptIn.Empty()
}

// Through returns the workload that is rolled instead of this one, or that would be if it existed.
func (w *Workload) Through() Key {
	if w.Owner != (Key{}) {
		return w.Owner
	}
	return w.Runs
}
