package workload

import (
	"maps"
	"slices"
	"time"
)

// AtLast reports whether the pod template has the revision of the mark.
func (w *Workload) AtLast() bool { return w.Last.Revision != "" && w.Revision == w.Last.Revision }

// IsRolling reports whether the last rollout is in progress or has failed, even if others have changed the rest of the pod template since. Once the
// rollout was complete, such a change starts another one, although most tools leave the revision on the pod template.
func (w *Workload) IsRolling() bool {
	return w.AtLast() && w.Progress.State != Complete && !w.Progress.Unready && w.completed != w.Last.Revision
}

// recallCompleted notes that the rollout of the last roll is complete, or was complete in an earlier state, which may be nil. One without pods does
// not count: nothing has started with the changes, or the workload that runs the pods is not known yet.
func (w *Workload) recallCompleted(earlier *Workload) {
	switch {
	case w.AtLast() && w.Progress.State == Complete && w.Progress.Pods > 0:
		w.completed = w.Last.Revision
	case earlier != nil && earlier.ID.UID == w.ID.UID && (w.completed == "" || w.completed != w.Last.Revision):
		w.completed = earlier.completed
	}
}

// Completed returns a copy of the workload that notes that the rollout with a revision was complete.
func (w *Workload) Completed(revision string) *Workload {
	completed := *w
	completed.completed = revision
	if alone := w.withoutRunners; alone != nil { // The index joins that with the workloads that run the pods.
		completed.withoutRunners = alone.Completed(revision)
	}
	return &completed
}

// IsReplaced reports whether another pod template has replaced that of the last roll, so that the record does not show that its pods became ready.
func (w *Workload) IsReplaced() bool {
	return !w.AtLast() && (w.Last.Revision != "" || w.UndoneBy != "")
}

// recallUndone keeps who has undone the first roll: the pod template does not show it, and the record only until the next write.
func (w *Workload) recallUndone(earlier *Workload) {
	if w.UndoneBy == "" && w.Last.At.IsZero() && w.template == earlier.template {
		w.UndoneBy = earlier.UndoneBy
	}
}

// HasFailed reports whether the rollout of the last roll failed, and has neither recovered nor been replaced.
func (w *Workload) HasFailed() bool { return w.AtLast() && w.Last.Failed != "" }

// Blamed returns the changes that may have caused the last rollout to fail, if it failed: none if the workload was failing before.
func (w *Workload) Blamed() map[string]RolledFor {
	if w.Last.WasFailing() {
		return nil
	}
	return w.ChangesIn(w.Last.For.and(w.Last.With))
}

// FailsBefore reports whether the workload fails before it is rolled, so that a later failure says nothing about the changes: its controller has
// given up, or pods are not ready without a rollout in progress. A DaemonSet does not show this, so it counts as not failing.
func (w *Workload) FailsBefore() bool {
	switch {
	case w.Progress.Unready:
		return true
	case w.IsRolling():
		return w.Last.WasFailing() // If it was not, the roll fails.
	}
	return w.Progress.State == Failed
}

// Suspects returns the changes that may have made the workload fail, even after the roll was undone.
func (w *Workload) Suspects() Marked {
	switch last := w.Last; {
	case last.Failed != "":
		return last.For.and(last.With)
	case w.AtLast() && !w.IsRolling():
		return nil
	default:
		return last.With
	}
}

// ChangesIn returns the changes of a list of the mark, by source.
func (w *Workload) ChangesIn(list Marked) map[string]RolledFor {
	named, others := list.split()
	changes := make(map[string]RolledFor, len(named))
	if others > 0 {
		maps.Copy(changes, w.Rolled)
	}
	for _, text := range named {
		source, change := parseChange(text)
		if source == "" {
			continue // The actuator never writes such a text.
		}
		if last := w.Rolled[source]; last.SameChange(change) {
			change = last // The record has the fingerprint, too.
		}
		changes[source] = change
	}
	return changes
}

// IsUntold reports whether the last roll was never reported, for example because the actuator was killed. Told is the last reported revision.
func (w *Workload) IsUntold(told string) bool {
	return w.Last.Revision != "" && w.Last.Revision != told
}

// NextLast returns the mark of a roll, or of a reload in place, for Write.Last.
func (w *Workload) NextLast(write Write) Last {
	next := Last{At: toSecond(write.RolledAt), Was: wasFine}
	if w.FailsBefore() {
		next.Was = wasFailing
	}
	replaced := make(map[string]bool, len(write.Changes))
	for _, change := range slices.Backward(write.Changes) {
		source := change.Source.String()
		replaced[source] = true
		next.For = append(next.For, changeText(source, write.Rolled[source]))
	}
	next.With = w.Suspects()
	if w.IsRolling() {
		next.With = w.Last.For.and(w.Last.With)
	}
	next.With = slices.DeleteFunc(slices.Clone(next.With), func(text string) bool {
		source, _ := parseChange(text)
		return replaced[source] // The new roll has a newer change of the source.
	})
	return next
}

// Fate is the fate of a workload's last roll.
type Fate string

const (
	// RollStands means that the pod template still has the roll, or that its loss does not matter: the rollout was complete, so the pods were
	// replaced, or someone else has written another pod template.
	RollStands Fate = "stands"
	// RollReverted means that another client, such as an operator, restored the pod template during the rollout, so that pods may have old content.
	RollReverted Fate = "reverted"
	// RollUndone means that a person restored the pod template or the record. It lasts until the next roll.
	RollUndone Fate = "undone"
)

// Seen is what is known of the last roll in addition to the state of the workload.
type Seen struct {
	// Before is an earlier state with the roll on the pod template. It is nil if there is none, as after a start of the actuator.
	Before *Workload
	// Ended says that the rollout was complete in some state, or that an outcome reports its end.
	Ended bool
	// Since is the earliest time at which a rollout that nobody has observed may have begun to be still in progress.
	Since time.Time
}

// Fate returns the fate of the last roll. If a person undoes the first roll of a StatefulSet or DaemonSet, managedFields do not show who did: this
// counts as reverted, and the workload is rolled again. For a Deployment, the same write restores the record, which shows who it was.
func (w *Workload) Fate(seen Seen) Fate {
	last := w.Last
	if seen.Before != nil {
		last = seen.Before.Last
	}
	switch {
	case w.AtLast() || last.Revision != "" && w.Revision == last.Revision:
		return RollStands
	case w.UndoneBy != "":
		return RollUndone
	case last.Revision == "", seen.Before != nil && !w.SameTemplate(seen.Before):
		return RollStands
	case seen.Ended || seen.Before == nil && last.At.Before(seen.Since):
		return RollStands
	}
	return RollReverted
}
