package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAWorkloadWaitsForAPeerThatFailed(t *testing.T) {
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}
	rolledFor := func(version, uid string) func(*workload.Workload) {
		return named("canary", func(w *workload.Workload) {
			w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: version, UID: uid}}
		})
	}
	tests := []struct {
		name   string
		peer   func(*workload.Workload)
		change func(*events.Change)
		want   plan.Reason
	}{
		{name: "that was rolled for the same change", peer: rolledFor("100", "uid"), want: plan.PeerFailed},
		{
			name: "also when an event about another key came since", peer: rolledFor("100", "uid"),
			change: func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt, c.Changed = "110", "110", []string{"user"}
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
			},
			want: plan.PeerFailed,
		},
		{
			name: "but not when the content has changed since: that may mend it", peer: rolledFor("100", "uid"),
			change: func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt = "110", "110"
				c.Keys["password"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
			},
			want: plan.None,
		},
		{name: "but not when it was rolled for an earlier change", peer: rolledFor("90", "uid"), want: plan.None},
		{name: "but not when it was rolled for another source of this name", peer: rolledFor("100", "another"), want: plan.None},
		{name: "but not when it was never rolled for the source", peer: named("canary", nil), want: plan.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, peer := workloadOf(t, "auto", password, nil), workloadOf(t, "auto", password, test.peer)
			f := newFailedPeers(indexOf(w, peer))
			f.add(peer.Key())
			decision := decisionOf(w, changeOf(test.change), nil)
			if got := f.stop(w, &decision) != nil; got != (test.want == plan.PeerFailed) {
				t.Errorf("it is stopped: %t, want %s", got, test.want)
			}
		})
	}
	t.Run("but not for itself", func(t *testing.T) {
		w := workloadOf(t, "auto", password, rolledFor("100", "uid"))
		f := newFailedPeers(indexOf(w))
		f.add(w.Key())
		decision := decisionOf(w, changeOf(nil), nil)
		if f.stop(w, &decision) != nil {
			t.Error("it is stopped by its own failure")
		}
	})
}

// timedOut returns a loop with a workload whose rollout has timed out, and that workload.
func timedOut(t *testing.T) (*loop, *workload.Workload) {
	t.Helper()
	options, now := testOptions(), written
	options.Now = func() time.Time { return now }
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Revision, w.Generation, w.Progress = "r1", 2, workload.Progress{Pods: 3}
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"}}
	})
	l := loopOf(t, options, w)
	l.rollouts.following.begin(t.Context(), rolledOut(w, "r1", 2))
	now = now.Add(options.RolloutTimeout)
	l.rollouts.reviewOverdue(t.Context())
	return l, w
}

func TestARolloutThatTimedOutHoldsItsPeers(t *testing.T) {
	complete := func(w *workload.Workload) { w.Progress.State = workload.Complete }
	another := func(w *workload.Workload) { w.Revision = "r2" }
	tests := []struct {
		name   string
		then   func(*workload.Workload)
		failed int
	}{
		{"while nothing happens", func(*workload.Workload) {}, 1},
		{"until it is complete after all", complete, 0},
		{"until it is rolled again", another, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, w := timedOut(t)
			after := *w
			after.Version = "70"
			test.then(&after)
			l.intake.index.Written(&after)
			l.rollouts.review(t.Context(), w.Key())
			l.takeSnapshot()
			if got := l.snapshots.Load().failing["deployment"]; got != test.failed {
				t.Errorf("%d workloads are failing, want %d", got, test.failed)
			}
			held := workloadOf(t, "auto", wholeDB, named("held", nil))
			decisions := decisionsOf(held, pendingOf(held, changeOf(nil)))
			if got := l.dispatcher.admission.peers.stop(held, &decisions[0]) != nil; got != (test.failed > 0) {
				t.Errorf("a peer is held: %t", got)
			}
		})
	}
}

func TestTheNextLeaderKnowsWhoseRolloutTimedOut(t *testing.T) {
	l, w := timedOut(t)
	last := l.outbox.waiting[len(l.outbox.waiting)-1].outcome
	if last.Verb != events.VerbFailed || last.Reason != "timed-out" {
		t.Fatalf("it ended as %s, %s", last.Verb, last.Reason)
	}
	next := newFailedPeers(indexOf(w))
	next.resumeOutcome(last)
	if len(next.keys) != 1 {
		t.Error("the next leader does not know that it has failed")
	}
	recovered := *w
	recovered.Progress.State = workload.Complete
	resumed := loopOf(t, testOptions(), &recovered)
	resumed.rollouts.peers.resumeOutcome(last)
	resumed.rollouts.reviewResumed(t.Context())
	if len(resumed.rollouts.peers.keys) != 0 {
		t.Error("the next leader takes it for failed although it has recovered")
	}
}
