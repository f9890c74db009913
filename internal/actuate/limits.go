package actuate

import "github.com/keyturn/keyturn/internal/workload"

// limits bounds the rollouts in progress.
type limits struct {
	// maxRollouts is --max-rollouts; zero is without limit.
	maxRollouts int
	following   *following
	patcher     *patcher
}

// reached reports whether a workload must wait for a slot. One without pods needs none.
func (l *limits) reached(w *workload.Workload) bool {
	return l.maxRollouts > 0 && w.Progress.Pods > 0 && l.inProgress() >= l.maxRollouts
}

// inProgress counts the rollouts that have a slot: those that replace pods, or soon will.
func (l *limits) inProgress() int {
	return l.following.replacing() + l.patcher.rolling(func(key workload.Key) bool { return !l.following.follows(key) })
}
