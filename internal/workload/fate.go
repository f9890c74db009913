package workload

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fate is what has become of the last roll of a workload.
type Fate int

const (
	// RollStands means that nothing is known to have become of it, or nothing that matters: its rollout was complete, so the pods were replaced.
	RollStands Fate = iota
	// RollReverted means that another client, such as an operator, has put back the pod template during the rollout: pods may have earlier content.
	RollReverted
	// RollUndone means that a person has put back the pod template, or the record. It stays so until the next roll, and says nothing about changes
	// that were made since.
	RollUndone
	// RollSuperseded means that someone else has written another pod template.
	RollSuperseded
)

// fates has the words for outcomes and logs.
var fates = [...]string{RollStands: "stands", RollReverted: "reverted", RollUndone: "undone", RollSuperseded: "superseded"}

// String returns the word for outcomes and logs.
func (f Fate) String() string { return fates[f] }

// Seen is what is known of the last roll of a workload beside the state of the workload.
type Seen struct {
	// Before is an earlier state, with the roll on the pod template. It is nil if there is none, as after the actuator has started.
	Before *Workload
	// Ended says that the rollout was complete in some state, or that an outcome says how it ended.
	Ended bool
	// Since is when a rollout that nobody has seen may have begun at the earliest to be in progress still.
	Since time.Time
}

// Fate returns what has become of the last roll. A workload without a mark can only have been undone. If a person undoes the first roll of a
// StatefulSet or a DaemonSet, only its pod template changes, and managedFields do not say who has removed an annotation: that counts as reverted,
// and the workload is rolled again. The record of a Deployment is put back by the same write, so there it is known.
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
	case last.Revision == "":
		return RollStands
	case seen.Before != nil && !w.SameTemplate(seen.Before):
		return RollSuperseded
	case seen.Ended || seen.Before == nil && last.At.Before(seen.Since):
		return RollStands
	}
	return RollReverted
}

// undoers are the programs with which people undo a rollout. They name no field manager for that, so the API server takes the name of the program.
// The other commands of kubectl name one: kubectl-replace, -edit or -patch have a manifest or a field, which a tool may have as well, and
// kubectl-rollout restarts, pauses and resumes.
var undoers = []string{"kubectl", "kubectl-argo-rollouts", "oc"}

// isUndoer reports whether a field manager is one of the programs. On Windows the name of a program has an extension, which no field manager has
// that a program names.
func isUndoer(manager string) bool {
	name, isProgram := strings.CutSuffix(manager, ".exe")
	return slices.Contains(undoers, name) || isProgram && strings.HasPrefix(name, "kubectl-")
}

// undoneBy returns the field manager of a person who has put back the revision on a pod template or the record, or "" if nobody has since the
// actuator wrote them. Whoever applies, as with `kubectl apply --server-side`, puts nothing back.
func undoneBy(meta *metav1.ObjectMeta) string {
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if !isUndoer(entry.Manager) {
			continue
		}
		fields := updatedFields(entry)
		if owns(fields, "f:metadata", "f:annotations", "f:"+annotationRolled) ||
			owns(fields, "f:spec", "f:template", "f:metadata", "f:annotations", "f:"+annotationRevision) {
			return entry.Manager
		}
	}
	return ""
}
