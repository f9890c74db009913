package actuate

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestNoMoreRolloutsAreInProgressThanAllowed(t *testing.T) {
	running := workload.Progress{State: workload.Progressing, Pods: 3}
	tests := []struct {
		name  string
		limit int
		// others are the states of those that are being rolled out.
		others []workload.Progress
		// patched says that a patch is under way to one more.
		patched bool
		pods    int32
		want    plan.Reason
	}{
		{name: "a place is free", limit: 2, others: []workload.Progress{running}, pods: 3, want: plan.None},
		{name: "no place is free", limit: 2, others: []workload.Progress{running, running}, pods: 3, want: plan.Limit},
		{name: "a patch that is under way takes a place", limit: 2, others: []workload.Progress{running}, patched: true, pods: 3, want: plan.Limit},
		{name: "a rollout without pods takes none", limit: 1, others: []workload.Progress{{State: workload.Progressing, Pods: 0}}, pods: 3, want: plan.None},
		{
			name: "nor does one that is restarted later", limit: 1,
			others: []workload.Progress{{NotBefore: written.Add(100 * 365 * 24 * time.Hour), Pods: 3}}, pods: 3, want: plan.None,
		},
		{name: "nor does one that waits for a person", limit: 1, others: []workload.Progress{{State: workload.Waiting, Pods: 3}}, pods: 3, want: plan.None},
		{name: "a workload without pods needs none", limit: 1, others: []workload.Progress{running}, pods: 0, want: plan.None},
		{name: "there is no limit", limit: 0, others: []workload.Progress{running, running, running}, pods: 3, want: plan.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Progress.Pods = test.pods })
			x := indexOf(w)
			b := busyWorkloadsOf(x)
			for i, state := range test.others {
				other := workloadOf(t, "auto", wholeDB, named(strconv.Itoa(i), func(w *workload.Workload) { w.Progress = state }))
				x.observe(other, false)
				b.following.rollouts[other.Key()] = &rollout{}
			}
			if test.patched {
				other := workloadOf(t, "auto", wholeDB, named("patched", func(w *workload.Workload) { w.Progress = running }))
				b.patcher.rolls[other.Key()] = &roll{workload: other, rolls: true}
			}
			l := limits{maxRollouts: test.limit, following: b.following, patcher: b.patcher}
			if got := l.reached(w); got != (test.want == plan.Limit) {
				t.Errorf("the limit is reached: %t, want %s", got, test.want)
			}
		})
	}
}
