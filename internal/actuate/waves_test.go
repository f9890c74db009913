package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAWorkloadWaitsForLowerWaves(t *testing.T) {
	started := events.Outcome{Sources: []events.OutcomeSource{{Source: "secret/db"}}}
	tests := []struct {
		name     string
		wave     int
		peerWave int
		peer     func(*busyWorkloads, *workload.Workload)
		want     plan.Reason
	}{
		{"that wait to be rolled for the same source", 1, 0, func(b *busyWorkloads, peer *workload.Workload) { b.debounce.pend(peer, changeOf(nil)) }, plan.LowerWave},
		{"that are being patched for it", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.patcher.underWay[peer.Key()] = &task{workload: peer, pending: pendingOf(peer, changeOf(nil))}
		}, plan.LowerWave},
		{"that are being rolled out for it", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.following.rollouts[peer.Key()] = &rollout{started: started}
		}, plan.LowerWave},
		{"a wave may be negative", 0, -1, func(b *busyWorkloads, peer *workload.Workload) { b.debounce.pend(peer, changeOf(nil)) }, plan.LowerWave},
		{"but not for those of its own wave", 1, 1, func(b *busyWorkloads, peer *workload.Workload) { b.debounce.pend(peer, changeOf(nil)) }, plan.None},
		{"nor for those of a higher one", 0, 1, func(b *busyWorkloads, peer *workload.Workload) { b.debounce.pend(peer, changeOf(nil)) }, plan.None},
		{"nor for those that have nothing to do", 1, 0, func(*busyWorkloads, *workload.Workload) {}, plan.None},
		{"nor for those that wait for people in the rollout", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.following.rollouts[peer.Key()] = &rollout{started: started}
			peer.Progress.State = workload.Waiting
		}, plan.None},
		{"nor for those that are restarted later", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.following.rollouts[peer.Key()] = &rollout{started: started}
			peer.Progress.NotBefore = written.Add(100 * 365 * 24 * time.Hour)
		}, plan.None},
		{"but for those whose restart has begun", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.following.rollouts[peer.Key()] = &rollout{started: started}
			peer.Progress.NotBefore = written.Add(-time.Hour)
		}, plan.LowerWave},
		{"nor for those that were aborted", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.debounce.pend(peer, changeOf(nil))
			peer.Aborted = true
		}, plan.None},
		{"nor for those that are on hold", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.debounce.pend(peer, changeOf(nil))
			peer.Hold = "tofu apply"
		}, plan.None},
		{"but for those that are being rolled out although they are on hold since", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.following.rollouts[peer.Key()] = &rollout{started: started}
			peer.Hold = "tofu apply"
		}, plan.LowerWave},
		{"nor for those whose source is on hold", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.debounce.pend(peer, changeOf(nil))
			b.debounce.hold(b.debounce.byKey[peer.Key()], plan.SourceOnHold)
		}, plan.None},
		{"nor for those whose own rollout is to replace the pods and waits for people", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.debounce.pend(peer, changeOf(nil)).report(plan.PodsStarting)
			peer.Progress.State = workload.Waiting
		}, plan.None},
		{"but for those whose own rollout is replacing them", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.debounce.pend(peer, changeOf(nil)).report(plan.PodsStarting)
		}, plan.LowerWave},
		{"and for those whose own rollout waits and that are to be rolled", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.debounce.pend(peer, changeOf(nil))
			peer.Progress.State = workload.Waiting
		}, plan.LowerWave},
		{"nor for those that wait for another source", 1, 0, func(b *busyWorkloads, peer *workload.Workload) {
			b.debounce.pend(peer, changeOf(func(c *events.Change) { c.Source = app }))
		}, plan.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Wave = test.wave })
			peer := workloadOf(t, "auto", wholeDB, named("peer", func(w *workload.Workload) { w.Wave = test.peerWave }))
			x := indexOf(w, peer)
			b := busyWorkloadsOf(x)
			test.peer(b, peer)
			b.debounce.pend(w, changeOf(nil))
			timing := &timing{index: x, namespaces: new(inventory.Namespaces), debounce: b.debounce, now: time.Now}
			unfinished := unfinished(b.debounce, b.following, timing, begun(b.patcher, b.following))
			v := newWaves(x, unfinished, returns(x, b.debounce, b.following, timing, time.Now), time.Now)
			if got := v.stop(w, db); (got != nil) != (test.want == plan.LowerWave) {
				t.Errorf("it is stopped by %v, want %s", got, test.want)
			}
		})
	}
}

// busyWorkloads are the parts that know which workloads are busy.
type busyWorkloads struct {
	debounce  *debounce
	patcher   *patcher
	following *following
}

func busyWorkloadsOf(x *inventory.Index) *busyWorkloads {
	return &busyWorkloads{newDebounce(time.Second, time.Minute), patcherOf(testOptions(), x), followingOf(testOptions(), x)}
}

func TestALowerWaveGoesFirstOnceItsWindowOpens(t *testing.T) {
	now, options := time.Date(2026, 3, 28, 0, 59, 58, 0, time.UTC), testOptions()
	options.Now, options.Window = func() time.Time { return now }, "0 1 * * * for 1h"
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	var read []*workload.Workload
	for _, wave := range []string{"0", "1"} {
		w, _ := a.index.Read(deployments, deploymentOf("wave-"+wave, "db", map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/wave": wave}))
		a.index.Listed(w, "")
		read = append(read, w)
	}
	l := newLoop(a.surroundings, unwritten(a))
	l.debounce.pend(read[0], changeOf(nil))
	waves := l.dispatcher.admission.waves
	if lower := waves.stop(read[1], db); lower != nil {
		t.Errorf("it waits for %s, whose window is closed", lower.ID)
	}
	now = now.Add(2 * time.Second)
	if lower := waves.stop(read[1], db); lower == nil {
		t.Error("it does not wait for the lower wave, whose window is open")
	}
}

func TestARestartThatSomebodyHasScheduledIsWaitedForOnceItsTimeHasCome(t *testing.T) {
	now := written
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Wave = 1 })
	peer := workloadOf(t, "auto", wholeDB, named("peer", func(w *workload.Workload) { w.Progress.NotBefore = now.Add(time.Hour) }))
	options := testOptions()
	options.Now = func() time.Time { return now }
	l := loopOf(t, options, w, peer)
	l.debounce.pend(peer, changeOf(nil)).report(plan.PodsStarting)
	if got := l.dispatcher.admission.waves.stop(w, db); got != nil {
		t.Errorf("before that it waits for %s", got.ID)
	}
	now = now.Add(time.Hour)
	if got := l.dispatcher.admission.waves.stop(w, db); got == nil {
		t.Error("then it waits for nobody")
	}
}
