package workload

import (
	"math"
	"time"
)

// State is the state of a rollout.
type State int

const (
	// Progressing means that some pods have yet to be replaced.
	Progressing State = iota
	// Complete means that all pods have the current template and are ready.
	Complete
	// Failed means that the workload's controller has given up.
	Failed
	// Waiting means that someone has told the workload's controller to wait, and must tell it to continue.
	Waiting
)

// Progress is the progress of the rollout of a workload's current template, according to its status.
type Progress struct {
	State State
	// Message has details for users. Remedy says how to help a rollout that makes no more progress, and is empty if unknown.
	Message, Remedy string
	// Aborted says that a rollout has failed because a person or an analysis aborted it, and that the earlier pods come back.
	Aborted bool
	// Partial says that pods of an earlier template may stay, because the rollout may end half way, as with a canary.
	Partial bool
	// Unready says, while progressing, that the rollout was complete and pods have failed since, cannot be created, or belong to a new
	// StatefulSet or to more replicas. DaemonSets and targets do not show this.
	Unready bool
	// Frozen says that a new template replaces no pods, because of a StatefulSet's partition.
	Frozen bool
	// NotBefore is the earliest time at which the next pod is replaced. It is zero if there is none.
	NotBefore time.Time
	// Pods is the desired number of pods. A rollout of no pods needs no slot among the rollouts in progress.
	Pods int32
	// Done grows while pods are replaced and become ready. It is comparable between states with the same generation and the same Pods.
	Done int32
}

// Advice returns the message with the remedy.
func (p Progress) Advice() string {
	if p.Remedy == "" {
		return p.Message
	}
	return p.Message + "; " + p.Remedy
}

// Waits reports whether nothing happens until someone tells the workload's controller to continue, or until a set time.
func (p Progress) Waits(now time.Time) bool {
	return p.State == Waiting || p.State == Progressing && now.Before(p.NotBefore)
}

// IsReplacingPods reports whether pods of an earlier template may be left, to be replaced or to stay for good.
func (w *Workload) IsReplacingPods() bool {
	return w.Progress.Pods > 0 && (w.Progress.State == Progressing || w.Progress.State == Failed || w.Progress.Partial)
}

// nothingDone is the Done of a workload whose controller has not observed the newest generation, as its counts are for an older one.
const nothingDone = math.MinInt32

// is returns the progress with a state and a message.
func (p Progress) is(state State, message string) Progress {
	p.State, p.Message = state, message
	return p
}

// with returns the slower progress of two rollouts of one template. Failed is the slowest, then Progressing, which has a deadline.
func (p Progress) with(other Progress) Progress {
	behind := p
	if stateOrder[other.State] > stateOrder[p.State] || other.State == p.State && other.Aborted {
		behind = other
	}
	behind.Unready = behind.Unready && (p.Unready || p.State == Complete) && (other.Unready || other.State == Complete)
	behind.Partial, behind.Frozen = p.Partial || other.Partial, p.Frozen || other.Frozen
	behind.Pods, behind.Done = p.Pods+other.Pods, p.Done+other.Done
	if p.Done == nothingDone || other.Done == nothingDone {
		behind.Done = nothingDone
	}
	return behind
}

// stateOrder orders states from the fastest to the slowest.
var stateOrder = map[State]int{Complete: 0, Waiting: 1, Progressing: 2, Failed: 3}

// unobserved returns the progress before the controller has observed the newest generation.
func (p Progress) unobserved() Progress {
	p.Done = nothingDone
	return p.is(Progressing, "the controller has not observed the change yet")
}

// serves reports whether pods of the current template are available. While others are left, the status does not tell which are available.
func serves(updated, pods, available int32) bool { return updated == pods && available > 0 }

// replicas returns the number of pods that a spec asks for, which is 1 by default.
func replicas(spec *int32) int32 {
	if spec == nil {
		return 1
	}
	return *spec
}
