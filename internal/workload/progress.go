package workload

import (
	"math"
	"time"
)

// State is how far a rollout is.
type State int

const (
	// Progressing means that pods are still to be replaced.
	Progressing State = iota
	// Complete means that all pods are of the current template, and ready.
	Complete
	// Failed means that the workload's controller has given up.
	Failed
	// Waiting means that someone has told the workload's controller to wait, and nothing happens until they tell it to go on.
	Waiting
)

// Progress is how far the rollout of a workload's current template is, according to its status.
type Progress struct {
	State State
	// Message says more, for people.
	Message string
	// Aborted says that a rollout has failed because it was aborted, by a person or an analysis, and the pods of before come back.
	Aborted bool
	// Partial says that pods of an earlier template may stay, because someone may end the rollout half way, as with a canary.
	Partial bool
	// NotBefore is when the next pod is replaced at the earliest. Zero: there is no such time.
	NotBefore time.Time
	// Pods is how many pods the workload is to have. A rollout of none needs no slot among the rollouts in progress.
	Pods int32
	// Done grows while pods are replaced and become ready. Two states can be compared if they are of one generation and have the same Pods.
	Done int32
}

// Waits reports whether nothing happens until someone has the workload's controller go on, or until a time that someone has set.
func (p Progress) Waits(now time.Time) bool {
	return p.State == Waiting || p.State == Progressing && now.Before(p.NotBefore)
}

// IsReplacingPods reports whether pods of an earlier template may be left, and nobody has to do anything for them to be replaced, or they may be
// left for good.
func (w *Workload) IsReplacingPods() bool {
	return w.Progress.Pods > 0 && (w.Progress.State == Progressing || w.Progress.State == Failed || w.Progress.Partial)
}

// nothingDone is the Done of a workload whose controller has not observed its newest generation: the counts are about another one.
const nothingDone = math.MinInt32

// is returns the progress with a state, and a message that says more.
func (p Progress) is(state State, message string) Progress {
	p.State, p.Message = state, message
	return p
}

// with returns the progress of two rollouts of one template whose pods different controllers replace: that of the one that is behind. A failure
// is behind everything, and waiting is ahead of progress, which has a deadline.
func (p Progress) with(other Progress) Progress {
	behind := p
	if stateOrder[other.State] > stateOrder[p.State] || other.State == p.State && other.Aborted {
		behind = other
	}
	behind.Partial = p.Partial || other.Partial
	behind.Pods, behind.Done = p.Pods+other.Pods, p.Done+other.Done
	if p.Done == nothingDone || other.Done == nothingDone {
		behind.Done = nothingDone
	}
	return behind
}

// stateOrder is how far behind a state is.
var stateOrder = map[State]int{Complete: 0, Waiting: 1, Progressing: 2, Failed: 3}

// unobserved is the progress before the controller has observed the newest generation.
func (p Progress) unobserved() Progress {
	p.Done = nothingDone
	return p.is(Progressing, "the controller has not observed the change yet")
}
