package actuate

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAChangeThatNeedsNothingIsToldAtOnce(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "80", UID: "uid"}}
	})
	l := loopOf(t, testOptions(), w)
	event := eventOf(changeOf(nil))
	l.intake.consider(t.Context(), event, w, nil)
	if event.open != 0 || len(l.debounce.byKey) != 0 {
		t.Errorf("%d workloads are open, %d wait", event.open, len(l.debounce.byKey))
	}
	if len(l.outbox.waiting) != 1 {
		t.Fatalf("%d outcomes are to be published, want one", len(l.outbox.waiting))
	}
	if outcome := l.outbox.waiting[0].outcome; outcome.Verb != events.VerbSkipped || outcome.Reason != plan.SameContent.String() {
		t.Errorf("the outcome is %s, %s", outcome.Verb, outcome.Reason)
	}
}

func TestNothingIsConcludedWhileAPatchIsUnderWay(t *testing.T) {
	// According to its record, the workload has this content, but the patch under way is about to write another record.
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "80", UID: "uid"}}
	})
	l := loopOf(t, testOptions(), w)
	l.patcher.underWay[w.Key()] = &task{workload: w, pending: newPending(w.Key(), written)}
	event := eventOf(changeOf(nil))
	l.intake.consider(t.Context(), event, w, nil)
	if event.open != 1 || l.debounce.byKey[w.Key()] == nil {
		t.Errorf("%d workloads are open, want the change to wait for the patch", event.open)
	}
}

// A tenant creates and deletes one new name after the other, and a workload that reads all of them waits forever.
func TestNamesThatComeAndGoWhileAWorkloadWaitsAreNotKeptInFlight(t *testing.T) {
	w := workloadOf(t, "configmap/*, secret/db", wholeDB, nil)
	l := loopOf(t, testOptions(), w)
	deliver := func(seq int, name string, verb events.Verb) {
		change := changeOf(func(c *events.Change) {
			c.Source, c.UID, c.Verb = events.Source{Kind: events.KindConfigMap, Namespace: w.ID.Namespace, Name: name}, "uid-"+name, verb
			c.ResourceVersion, c.ChangedAt = strconv.Itoa(1000+seq), strconv.Itoa(1000+seq)
			if verb == events.VerbDeleted {
				c.Changed = nil
			}
		})
		l.intake.take(t.Context(), &events.Delivery{Change: change, Seq: uint64(seq), Deliveries: 1})
	}
	deliver(1, "stays", events.VerbChanged)
	l.debounce.hold(l.debounce.pop(l.now().Add(time.Hour), func(string) bool { return true }), plan.PeerFailed)
	for i := range 100 {
		name := "churned-" + strconv.Itoa(i)
		deliver(10+2*i, name, events.VerbChanged)
		deliver(11+2*i, name, events.VerbDeleted)
	}
	if open, waiting := len(l.inFlight.open), len(l.debounce.byKey[w.Key()].changes); open != 1 || waiting != 1 {
		t.Errorf("%d events are in flight for %d pending changes, want those of the source that is there", open, waiting)
	}
	if !l.debounce.byKey[w.Key()].isHeld() {
		t.Error("the workload is not held any more")
	}
	// When the last source is gone, it has nothing to wait for.
	deliver(500, "stays", events.VerbDeleted)
	if len(l.inFlight.open) != 0 || len(l.debounce.byKey) != 0 || l.debounce.countHeld() != 0 {
		t.Errorf("%d events are in flight and %d workloads wait, want none", len(l.inFlight.open), len(l.debounce.byKey))
	}
}

// A pod that starts while the workload waits has content that the record does not name, and keeps it when the old content is back.
func TestThatAWorkloadHasWaitedIsKnownAfterItsSourceWasMadeAnew(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "80", UID: "uid"}}
		w.Progress.Pods = 1
	})
	l := loopOf(t, testOptions(), w)
	deliver := func(seq uint64, mutate func(*events.Change)) {
		l.intake.take(t.Context(), &events.Delivery{Change: changeOf(mutate), Seq: seq, Deliveries: 1, Received: written.Add(time.Duration(seq) * time.Second)})
	}
	deliver(1, nil)
	l.debounce.hold(l.debounce.pop(l.now().Add(time.Hour), func(string) bool { return true }), plan.PeerFailed)
	deliver(10, func(c *events.Change) { c.Verb, c.Changed = events.VerbDeleted, nil })
	deliver(11, func(c *events.Change) {
		c.UID, c.ResourceVersion, c.ChangedAt, c.CreatedAt, c.Created, c.Fingerprint, c.Previous = "uid-new", "110", "110", "110", true, fp("a"), ""
	})
	p := l.debounce.byKey[w.Key()]
	if p == nil || p.changes[db] == nil {
		t.Fatal("nothing is pending, want the content that came back to be decided")
	}
	c := p.changes[db]
	if decision := l.intake.policy.Decide(w, c.change, p.past(c, written.Add(12*time.Second))); decision.Reason != plan.ChangedMeanwhile {
		t.Errorf("got %s, want %s", decision.Reason, plan.ChangedMeanwhile)
	}
	if open := len(l.inFlight.open); open != 1 {
		t.Errorf("%d events are in flight, want the last one", open)
	}
}

// `kubectl rollout undo` also restores the annotations of the earlier revision, and starts pods with the current content.
func TestARecordThatSomeoneHasPutBackDoesNotTellWhatPodsHave(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "80", UID: "uid", Scope: "*"}}
	})
	tests := []struct {
		name string
		last string // the fingerprint of what was decided last
		want int
	}{
		{"other content was decided last", "c", 1},
		{"the content of the record was decided last", "b", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := loopOf(t, testOptions(), w)
			l.intake.baselines.next(&events.Delivery{Change: changeOf(func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt, c.Fingerprint = "90", "90", fp(test.last)
			})}, true)
			l.intake.take(t.Context(), &events.Delivery{Change: changeOf(nil), Deliveries: 1})
			if got := len(l.debounce.byKey); got != test.want {
				t.Errorf("%d workloads are pending, want %d", got, test.want)
			}
		})
	}
}
