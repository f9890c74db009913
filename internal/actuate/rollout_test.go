package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// progressOf shows the index a workload with a progress, at the next version.
func progressOf(t *testing.T, x *inventory.Index, p workload.Progress, version string) *workload.Workload {
	t.Helper()
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Version, w.Revision, w.Generation, w.Progress = version, "r1", 2, p
	})
	x.Written(w)
	return w
}

func TestARolloutTimesOutWithoutProgressOnly(t *testing.T) {
	type step struct {
		after time.Duration
		workload.Progress
	}
	progressing := func(done int32) workload.Progress { return workload.Progress{Pods: 30, Done: done} }
	paused := workload.Progress{State: workload.Waiting, Pods: 30}
	scheduled := workload.Progress{NotBefore: written.Add(16 * time.Minute), Pods: 30}
	tests := []struct {
		name  string
		steps []step
		ends  bool
	}{
		{"it has been slow for long, and a pod was replaced a minute ago", []step{{0, progressing(0)}, {15 * time.Minute, progressing(28)}, {time.Minute, progressing(28)}}, false},
		{"it is resumed after it was paused for long", []step{{0, paused}, {16 * time.Minute, paused}, {time.Second, progressing(0)}}, false},
		{"it makes no progress after it is resumed", []step{{0, paused}, {time.Minute, progressing(0)}, {15 * time.Minute, progressing(0)}}, true},
		{"it is restarted later", []step{{0, scheduled}, {16*time.Minute - time.Second, scheduled}, {14 * time.Minute, scheduled}}, false},
		{"the restart makes no progress", []step{{0, scheduled}, {16*time.Minute - time.Second, scheduled}, {16 * time.Minute, scheduled}}, true},
		{"it makes no progress", []step{{0, progressing(3)}, {15 * time.Minute, progressing(3)}}, true},
		{"a pod crashes and comes up again", []step{{0, progressing(3)}, {10 * time.Minute, progressing(2)}, {5 * time.Minute, progressing(3)}}, true},
		{"it was scaled", []step{{0, progressing(3)}, {15 * time.Minute, workload.Progress{Pods: 20, Done: 3}}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options, now := testOptions(), written
			options.Now = func() time.Time { return now }
			x := indexOf()
			w := progressOf(t, x, test.steps[0].Progress, "60")
			f := followingOf(options, x)
			f.begin(t.Context(), rolledOut(w, "r1", 2))
			for i, s := range test.steps {
				now = now.Add(s.after)
				w = progressOf(t, x, s.Progress, string(rune('1'+i))+"00")
				if _, ended := f.review(w.Key(), w, 0); ended {
					t.Fatal("it has ended")
				}
				if i < len(test.steps)-1 && len(f.overdue()) > 0 {
					t.Fatalf("it has timed out after step %d", i)
				}
			}
			ended := f.overdue()
			if (len(ended) == 1) != test.ends {
				t.Errorf("%d have timed out", len(ended))
			}
			if test.ends && ended[0].outcome.Reason != "timed-out" {
				t.Errorf("it ends as %s", ended[0].outcome.Reason)
			}
		})
	}
}

func TestAStateFromBeforeTheRolloutThatStaysSupersedesIt(t *testing.T) {
	options, now := testOptions(), written
	options.Now = func() time.Time { return now }
	x := indexOf()
	w := progressOf(t, x, workload.Progress{State: workload.Complete, Pods: 3, Done: 3}, "60")
	f := followingOf(options, x)
	f.begin(t.Context(), rolledOut(w, "r2", w.Generation+1)) // as a new leader does after etcd was restored
	for range 2 {
		now = now.Add(options.RolloutTimeout / 2)
		if _, ended := f.review(w.Key(), w, 0); ended {
			t.Fatal("a state from before the rollout has ended it")
		}
		if now.Sub(written) < options.RolloutTimeout && len(f.overdue()) > 0 {
			t.Fatal("it has ended too early")
		}
	}
	if ended := f.overdue(); len(ended) != 1 || ended[0].outcome.Reason != reasonSuperseded {
		t.Errorf("it is not superseded: %v", ended)
	}
}

func TestARolloutThatIsResumedByTheNextLeaderHasItsTime(t *testing.T) {
	options := testOptions()
	now := written.Add(time.Hour)
	options.Now = func() time.Time { return now }
	x := indexOf()
	w := progressOf(t, x, workload.Progress{Pods: 30, Done: 3}, "60")
	f := followingOf(options, x)
	f.resume(t.Context(), rolledOut(w, "r1", 2))
	if ended := f.overdue(); len(ended) != 0 {
		t.Errorf("it is ended as %s", ended[0].outcome.Reason)
	}
}
