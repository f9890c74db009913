package workload

import (
	"maps"
	"slices"
	"time"
)

// AtLast reports whether the pod template has the revision of the mark.
func (w *Workload) AtLast() bool { return w.Last.Revision != "" && w.Revision == w.Last.Revision }

// IsRolling reports whether the rollout of the last roll is in progress, or has failed, also if others have changed the rest of the pod template
// meanwhile. Once it was complete, such a change begins another rollout: most tools leave the revision on the pod template.
func (w *Workload) IsRolling() bool {
	return w.AtLast() && w.Progress.State != Complete && !w.Progress.Unready && w.completed != w.Last.Revision
}

// recallCompleted notes that the rollout of the last roll is complete, or takes over from an earlier state, which may be nil, that it was.
func (w *Workload) recallCompleted(earlier *Workload) {
	switch {
	case w.AtLast() && w.Progress.State == Complete:
		w.completed = w.Last.Revision
	case earlier != nil && earlier.ID.UID == w.ID.UID && (w.completed == "" || w.completed != w.Last.Revision):
		w.completed = earlier.completed
	}
}

// Completed returns the workload as one of which the rollout with a revision was complete.
func (w *Workload) Completed(revision string) *Workload {
	completed := *w
	completed.completed = revision
	return &completed
}

// IsReplaced reports whether the pod template is not that of the last roll any more, so that the record does not show that its pods got ready.
func (w *Workload) IsReplaced() bool {
	return !w.AtLast() && (w.Last.Revision != "" || w.UndoneBy != "")
}

// recallUndone takes over who has undone the first roll: the pod template does not show that, and the record only until it is written again.
func (w *Workload) recallUndone(earlier *Workload) {
	if w.UndoneBy == "" && w.Last.At.IsZero() && w.template == earlier.template {
		w.UndoneBy = earlier.UndoneBy
	}
}

// HasFailed reports whether the rollout of the last roll failed, and has neither recovered nor been replaced.
func (w *Workload) HasFailed() bool { return w.AtLast() && w.Last.Failed != "" }

// Blamed returns the changes of which one may be why the rollout of the last roll failed, if it did: none if the workload was failing before.
func (w *Workload) Blamed() map[string]RolledFor {
	if w.Last.WasFailing() {
		return nil
	}
	return w.ChangesIn(w.Last.For.and(w.Last.With))
}

// FailsBefore reports whether the workload fails before it is rolled, so that a failure afterwards says nothing about the changes: its controller has
// given up, or pods are not ready although no rollout is in progress. A DaemonSet, which does not show that, counts as not failing.
func (w *Workload) FailsBefore() bool {
	switch {
	case w.Progress.Unready:
		return true
	case w.IsRolling():
		return w.Last.WasFailing() // Otherwise it is the roll that fails.
	}
	return w.Progress.State == Failed
}

// Suspects returns the changes of which one may be why the workload failed, also after the roll is undone.
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
			continue // Nobody but a person has written that.
		}
		if last := w.Rolled[source]; last.SameChange(change) {
			change = last // It has the fingerprint as well.
		}
		changes[source] = change
	}
	return changes
}

// IsUntold reports whether the last roll was never reported, given the revision of the last one that was, as after the actuator was killed.
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
		return replaced[source] // There is a newer change of it.
	})
	return next
}

// Fate is what has become of the last roll of a workload.
type Fate string

const (
	// RollStands means that nothing is known to have become of it, or nothing that matters: its rollout was complete, so the pods were replaced, or
	// someone else has written another pod template.
	RollStands Fate = "stands"
	// RollReverted means that another client, such as an operator, has put back the pod template during the rollout: pods may have earlier content.
	RollReverted Fate = "reverted"
	// RollUndone means that a person has put back the pod template, or the record. It stays so until the next roll.
	RollUndone Fate = "undone"
)

// Seen is what is known of the last roll of a workload beside the state of the workload.
type Seen struct {
	// Before is an earlier state, with the roll on the pod template. It is nil if there is none, as after the actuator has started.
	Before *Workload
	// Ended says that the rollout was complete in some state, or that an outcome says how it ended.
	Ended bool
	// Since is when a rollout that nobody has seen may have begun at the earliest to be in progress still.
	Since time.Time
}

// Fate returns what has become of the last roll. If a person undoes the first one of a StatefulSet or a DaemonSet, managedFields do not say who did:
// that counts as reverted, and the workload is rolled again. For a Deployment, the record, which the same write puts back, says who it was.
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
