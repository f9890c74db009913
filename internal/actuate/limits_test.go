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
		// patched says that a patch of one more is under way.
		patched bool
		// again is the state of the last rollout of that one, which is followed, nil if it has none.
		again *workload.Progress
		pods  int32
		want  plan.Reason
	}{
		{name: "a place is free", limit: 2, others: []workload.Progress{running}, pods: 3, want: plan.None},
		{name: "no place is free", limit: 2, others: []workload.Progress{running, running}, pods: 3, want: plan.Limit},
		{name: "a patch that is under way takes a place", limit: 2, others: []workload.Progress{running}, patched: true, pods: 3, want: plan.Limit},
		{
			name: "also to one whose pods have to stay ready", limit: 2, others: []workload.Progress{running}, patched: true, pods: 3,
			again: &workload.Progress{State: workload.Complete, Pods: 3}, want: plan.Limit,
		},
		{
			name: "also to one whose rollout waits for a person, as several may", limit: 2, others: []workload.Progress{running}, patched: true, pods: 3,
			again: &workload.Progress{State: workload.Waiting, Pods: 3}, want: plan.Limit,
		},
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
				x.Listed(other, "")
				b.following.rollouts[other.Key()] = &rollout{}
			}
			if test.patched {
				other := workloadOf(t, "auto", wholeDB, named("patched", func(w *workload.Workload) { w.Progress = running }))
				if test.again != nil {
					other.Progress = *test.again
					x.Listed(other, "")
					b.following.rollouts[other.Key()] = &rollout{}
				}
				b.patcher.underWay[other.Key()] = &task{workload: other, rolls: true}
			}
			l := newLimits(Options{MaxRollouts: test.limit, Namespaces: []string{"shop"}}, b.following, b.patcher)
			if got := l.stop(w); got != test.want {
				t.Errorf("it waits for %q, want %q", got, test.want)
			}
		})
	}
}

func TestANamespaceHasItsShareOfTheLimit(t *testing.T) {
	tests := []struct {
		name    string
		options Options
		// shop and bank are how many workloads of each are being rolled out.
		shop, bank int
		want       plan.Reason
	}{
		{"alone it may take half", Options{MaxRollouts: 10}, 4, 0, plan.None},
		{"and no more, so that another finds a slot at once", Options{MaxRollouts: 10}, 5, 0, plan.NamespaceLimit},
		{"of two each may take a third", Options{MaxRollouts: 9}, 2, 3, plan.None},
		{"and no more", Options{MaxRollouts: 9}, 3, 3, plan.NamespaceLimit},
		{"one that has none may take the last slot", Options{MaxRollouts: 2}, 0, 1, plan.None},
		{"but none where none is left", Options{MaxRollouts: 1}, 0, 1, plan.Limit},
		{"it may take all where no other is watched", Options{MaxRollouts: 10, Namespaces: []string{"shop"}}, 9, 0, plan.None},
		{"and no more than those", Options{MaxRollouts: 10, Namespaces: []string{"shop"}}, 10, 0, plan.Limit},
		{"it has a limit of its own", Options{MaxRollouts: 10, MaxRolloutsPerNamespace: 2}, 2, 0, plan.NamespaceLimit},
		{"in which others do not count", Options{MaxRollouts: 10, MaxRolloutsPerNamespace: 2}, 1, 4, plan.None},
		{"also where the cluster has none", Options{MaxRolloutsPerNamespace: 2}, 2, 0, plan.NamespaceLimit},
		{"also where no other is watched", Options{MaxRollouts: 10, MaxRolloutsPerNamespace: 2, Namespaces: []string{"shop"}}, 2, 0, plan.NamespaceLimit},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Progress.Pods = 3 })
			x := indexOf(w)
			b := busyWorkloadsOf(x)
			for namespace, count := range map[string]int{"shop": test.shop, "bank": test.bank} {
				for i := range count {
					other := workloadOf(t, "auto", wholeDB, named(strconv.Itoa(i), func(w *workload.Workload) {
						w.ID.Namespace, w.Progress = namespace, workload.Progress{State: workload.Progressing, Pods: 3}
					}))
					x.Listed(other, "")
					b.following.rollouts[other.Key()] = &rollout{}
				}
			}
			l := newLimits(test.options, b.following, b.patcher)
			if got := l.stop(w); got != test.want {
				t.Errorf("it waits for %q, want %q", got, test.want)
			}
		})
	}
}

// What has changed meanwhile may repair the rollout.
func TestAWorkloadThatIsBeingRolledHasItsSlotAlready(t *testing.T) {
	for name, options := range map[string]Options{
		"of the cluster":             {MaxRollouts: 1, Namespaces: []string{"shop"}},
		"of its namespace":           {MaxRollouts: 10, MaxRolloutsPerNamespace: 1},
		"of the half of a namespace": {MaxRollouts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			running := func(w *workload.Workload) { w.Progress = workload.Progress{State: workload.Progressing, Pods: 3} }
			w, other := workloadOf(t, "auto", wholeDB, running), workloadOf(t, "auto", wholeDB, named("other", running))
			b := busyWorkloadsOf(indexOf(w, other))
			b.following.rollouts[w.Key()] = &rollout{}
			l := newLimits(options, b.following, b.patcher)
			if got := l.stop(w); got != plan.None {
				t.Errorf("it waits for %q", got)
			}
			b.patcher.underWay[w.Key()] = &task{workload: w, rolls: true}
			l.review(w.Key())
			if len(l.inProgress) != 1 || l.taken["shop"] != 1 {
				t.Errorf("%d slots are taken, %d in its namespace, want its own", len(l.inProgress), l.taken["shop"])
			}
			if got := l.stop(other); got == plan.None {
				t.Error("another workload finds a slot, too")
			}
		})
	}
}
