package workload

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownerOf returns the controller of an object, if that is rolled instead. What a Job of a target reads, or is still to do, is nothing of the
// target's pods.
func (r Reading) ownerOf(k Kind, meta *metav1.ObjectMeta) (Key, bool) {
	controller := metav1.GetControllerOfNoCopy(meta)
	isOfPods := slices.Contains(ownable, k.Name) || k.plural != ""
	if controller == nil || len(r.Owners) == 0 || !isOfPods {
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
	case w.owned && w.lent.none: // Its own controller gets nothing of it, and nothing through it.
	case w.owned:
		w.lent = w.lent.and(from.lent)
	case !from.owned || !w.OptIn.none:
		w.OptIn = w.OptIn.and(from.lent)
	}
	if from.owned && !from.lent.none {
		w.Refs = merged(w.Refs, from.Refs)
	}
}

// MaxOwners is how many owners are looked for on the way to the outermost one. With more, as where they own each other, a workload is rolled itself.
const MaxOwners = 8

// Owned returns the workload, which has an Owner, as it is while that one is rolled instead.
func (w *Workload) Owned() *Workload {
	owned := *w.byItself()
	if owned.Owner == (Key{}) || owned.owned {
		return w
	}
	owned.Runs, owned.owned, owned.lent, owned.OptIn = owned.Owner, true, owned.OptIn, OptIn{}
	owned.Reverted = maps.Clone(owned.Reverted)
	return &owned
}

// Unowned returns the workload as it is while it is rolled itself although it has an Owner, which is not there, or which it owns.
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

// Through returns the workload that is rolled instead of this one, or would be if it were there.
func (w *Workload) Through() Key {
	if w.Owner != (Key{}) {
		return w.Owner
	}
	return w.Runs
}
