package workload

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
)

// runners are the workloads that are rolled instead of another one, because they have its pod template or control it.
type runners struct {
	// Runs is the workload that is rolled instead of this one: the one with the pod template of its pods, or its Owner. It is zero if there is none.
	Runs Key
	// Owner is the workload's controller, if its kind is rolled instead. It is zero otherwise.
	Owner Key
	// owned says that Runs is set because it is the controller. Then the references of this workload count for the controller, too.
	owned bool
	// passedOn is the opt-in that counts for the workload that Runs names instead of this one. observes is the generation of that workload that this
	// one's controller has observed.
	passedOn OptIn
	observes int64
	// withoutRunners is the workload as if no other ran the pods of its template, or nil if none does. asked is the time of the newest write to the
	// annotations of the others, or later.
	withoutRunners *Workload
	asked          time.Time
}

// ownerOf returns the controller of an object if that is rolled instead. A target's Job does not count: the target's pods are others.
func (r Reading) ownerOf(k Kind, meta *metav1.ObjectMeta) (Key, bool) {
	controller := metav1.GetControllerOfNoCopy(meta)
	isOfPods := slices.Contains(ownable, k.Name) || k.plural != ""
	if controller == nil || len(r.Owners) == 0 || !isOfPods {
		return Key{}, false
	}
	name, known := r.Owners[schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind()]
	return Key{Kind: name, Namespace: meta.Namespace, Name: controller.Name}, known
}

// addOptIn adds the opt-in of another workload to w, and the references of the other if w controls it. If w opts in to none, nothing is added. If the
// other opts in to none, its references are ignored if w controls it; otherwise w rolls on nothing.
func (w *Workload) addOptIn(from *Workload) {
	if from.owned && from.passedOn.none {
		return
	}
	if w.owned {
		w.passedOn = w.passedOn.and(from.passedOn)
	} else {
		w.OptIn = w.OptIn.and(from.passedOn)
	}
	if from.owned {
		w.Refs = merged(w.Refs, from.Refs)
	}
}

// MaxOwners limits the chain of owners from a workload to the outermost one. In a longer chain, such as a circle, the workload is rolled itself.
const MaxOwners = 8

// Owned returns the state of the workload if its Owner is rolled instead of it.
func (w *Workload) Owned() *Workload {
	owned := *w.byItself()
	if owned.Owner == (Key{}) || owned.owned {
		return w
	}
	owned.Runs, owned.owned, owned.passedOn, owned.OptIn = owned.Owner, true, owned.OptIn, OptIn{}
	return &owned
}

// Unowned returns the state of the workload if it is rolled itself, because its Owner does not exist or is owned by it.
func (w *Workload) Unowned() *Workload {
	unowned := *w.byItself()
	if !unowned.owned {
		return w
	}
	unowned.Runs, unowned.owned, unowned.passedOn, unowned.OptIn = Key{}, false, OptIn{}, unowned.passedOn
	return &unowned
}

// IsOrphan reports whether the workload may be rolled itself although it has an Owner.
func (w *Workload) IsOrphan() bool {
	return w.Owner != (Key{}) && w.Runs == (Key{}) && !w.OptIn.Empty()
}

// Through returns the workload that is rolled instead of this one if it exists.
func (w *Workload) Through() Key { return cmp.Or(w.Owner, w.Runs) }

// RunBy returns the state of w while other workloads run the pods of its template, such as a Rollout whose workloadRef names a Deployment, or while w
// is rolled instead of workloads that it controls. Their progress and annotations count, too. Without runners, it returns w by itself. A controlled
// workload counts as deleted while its kind is not served; if the kind of another runner is not served, w is Unserved.
func (w *Workload) RunBy(runners ...*Workload) *Workload {
	alone := w.byItself()
	joined := *alone
	if len(runners) == 0 {
		return &joined
	}
	joined.withoutRunners, joined.asked = alone, time.Time{}
	joined.Progress = Progress{State: Complete}
	serving := make([]string, 0, len(runners)+1)
	switch {
	case alone.target != nil:
		joined.Progress = alone.target.said
	case alone.Progress.Pods > 0:
		joined.Progress = alone.Progress
	}
	if alone.Progress.Pods > 0 && (alone.target == nil || !alone.target.owned) {
		serving = append(serving, alone.ServingSince)
	}
	for _, runner := range runners {
		if runner.Unserved && runner.owned {
			continue
		}
		joined.Unserved = joined.Unserved || runner.Unserved
		joined.addOptIn(runner)
		joined.Aborted = joined.Aborted || runner.Aborted
		joined.timing = joined.or(runner.timing)
		joined.Wave = cmp.Or(joined.Wave, runner.Wave)
		joined.asked = later(joined.asked, runner.Written)
		progress, since := alone.progressOf(runner)
		joined.Progress = joined.Progress.with(progress)
		serving = append(serving, since)
	}
	if joined.Progress.State == Progressing && alone.target != nil && alone.target.said.State == Waiting {
		// The controller does not touch its workloads until a user tells it to continue.
		joined.Progress = joined.Progress.is(Waiting, alone.target.said.Message)
	}
	joined.ServingSince = sinceAll(serving)
	return &joined
}

// progressOf returns the progress of a workload that runs the pods of w, and since when they serve. If w controls it, both are unknown until it has
// the annotations of the last roll.
func (w *Workload) progressOf(runner *Workload) (Progress, string) {
	isAwaited := w.target != nil && w.target.owned && w.Revision != "" && runner.Revision != w.Revision
	switch {
	case runner.owned && isAwaited:
		p := Progress{Pods: runner.Progress.Pods}.unobserved()
		return p.is(Progressing, runner.ID.String()+" does not have the change yet"), ""
	case runner.owned:
		return runner.Progress, runner.ServingSince
	case runner.observes < w.Generation:
		return Progress{Pods: runner.Progress.Pods}.unobserved(), ""
	case runner.ServingSince != "":
		return runner.Progress, runner.Version // Before that, it may have had pods of another template.
	}
	return runner.Progress, ""
}

// sinceAll returns the newest of the resourceVersions, or "" if one is empty or there are none.
func sinceAll(versions []string) string {
	if len(versions) == 0 || slices.Contains(versions, "") {
		return ""
	}
	return slices.MaxFunc(versions, events.CompareVersions)
}

// byItself returns the workload as if no other ran the pods of its template, and as if it controlled no other.
func (w *Workload) byItself() *Workload {
	if w.withoutRunners != nil {
		return w.withoutRunners
	}
	return w
}

// Serving returns the state of w with its kind served or not.
func (w *Workload) Serving(serves bool) *Workload {
	as := *w.byItself()
	as.Unserved = !serves
	return &as
}

// IsRun reports whether another workload runs the pods of the template.
func (w *Workload) IsRun() bool { return w.withoutRunners != nil }

// WantedBy returns a time by which the workload already wanted its present sources. The actuator's own writes do not count.
func (w *Workload) WantedBy() time.Time {
	return later(w.asked, w.Edited)
}
