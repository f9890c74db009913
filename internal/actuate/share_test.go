package actuate

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// newPatternBed is a heldBed whose workload reads each ConfigMap of its namespace, and waits with the change of one.
func newPatternBed(t *testing.T) *heldBed {
	t.Helper()
	b := newHeldBedOf(t, testOptions(), "configmap/*, secret/db")
	b.deliver(configMap("first", 100, "b"))
	if b.pending() == nil || b.pending().held != plan.Limit {
		t.Fatalf("it does not wait for a slot: %+v", b.pending())
	}
	return b
}

// configMap is a change of a ConfigMap, which is at a resourceVersion.
func configMap(name string, number int, letter string) events.Change {
	change := version(number, letter)
	change.Source, change.UID = events.Source{Kind: events.KindConfigMap, Namespace: db.Namespace, Name: name}, "uid-"+name
	return change
}

// postponement returns for how long a delivery was postponed, zero if it was not.
func (b *heldBed) postponement(d *events.Delivery) time.Duration {
	if postponed, ok := errors.AsType[*events.PostponeError](b.done[d]); ok {
		return postponed.For
	}
	return 0
}

// wantCount fails the test unless the share counts what waits.
func (b *heldBed) wantCount(when string) {
	b.Helper()
	want := 0
	for _, p := range b.gathering.byKey {
		want += len(p.changes)
	}
	for _, r := range b.patcher.rolls {
		want += len(r.pending.changes)
	}
	if s := b.inFlight.share; s.total != want || s.waiting[b.held.ID.Namespace] != want {
		b.Errorf("%s: the share counts %d changes, %d in all, want %d", when, s.waiting[b.held.ID.Namespace], s.total, want)
	}
}

// A tenant whose workload waits, maybe for good, changes ever new names. The server delivers nothing more to anybody once as many events are in flight
// as the consumer may have.
func TestANamespaceKeepsNoMoreThanItsShareInFlight(t *testing.T) {
	b := newPatternBed(t)
	for i := range shareInFlight + 1000 {
		b.intake.take(t.Context(), b.publish(configMap("many-"+strconv.Itoa(i), 1000+i, "c")))
	}
	if open := len(b.inFlight.open); open != shareInFlight {
		t.Errorf("%d events are in flight, want %d", open, shareInFlight)
	}
	if len(b.done) != 1001 {
		t.Errorf("%d events are finished, want those beyond the share", len(b.done))
	}
	for d := range b.done {
		if wait := b.postponement(d); wait < 5*time.Minute || wait > 6*time.Minute {
			t.Fatalf("an event is finished with %v, want it postponed", b.done[d])
		}
	}
	if most := consumeOptions(testOptions(), nil).MaxAckPending; most != -1 {
		t.Errorf("the server stops at %d events, want it to deliver those of others", most)
	}
	b.wantCount("in the end")
}

func TestAWorkloadThatWaitsWithNothingTakesAnEventBeyondTheShare(t *testing.T) {
	b := newPatternBed(t)
	b.inFlight.share.limit = 1
	other := workloadOf(t, "auto", workload.Reference{Kind: events.KindConfigMap, Name: "second"}, named("other", nil))
	b.dispatcher.index.observe(other, false)
	second := b.publish(configMap("second", 110, "c"))
	b.intake.take(t.Context(), second)
	if !b.gathering.has(other.Key(), second.Change.Source) || b.gathering.has(b.held.Key(), second.Change.Source) {
		t.Fatal("want the event taken for the other workload alone")
	}
	if len(b.done) != 0 {
		t.Fatal("the event is finished before that workload is")
	}
	b.wantCount("while both wait")
	b.concluder.releaseAll(t.Context(), b.gathering.byKey[other.Key()], plan.WorkloadGone)
	b.gathering.drop(b.gathering.byKey[other.Key()])
	if b.postponement(second) == 0 {
		t.Errorf("it is finished with %v, want it postponed for the one that waits", b.done[second])
	}
	b.wantCount("after that")
}

// A rejection would end it for the workload that has not taken it, too.
func TestAnEventThatIsPostponedIsNotRejected(t *testing.T) {
	b := newPatternBed(t)
	b.inFlight.share.limit = 1
	other := workloadOf(t, "auto", workload.Reference{Kind: events.KindConfigMap, Name: "second"}, named("other", nil))
	b.dispatcher.index.observe(other, false)
	second := b.publish(configMap("second", 110, "c"))
	b.intake.take(t.Context(), second)
	p := b.gathering.byKey[other.Key()]
	p.changes[second.Change.Source].event.reject(&events.RejectError{Reason: events.ReasonPatchDenied, Err: errors.New("no")})
	b.concluder.releaseAll(t.Context(), p, plan.WorkloadGone)
	if b.postponement(second) == 0 {
		t.Errorf("it is finished with %v, want it postponed", b.done[second])
	}
}

func TestAPostponedEventIsTakenWhenThereIsRoom(t *testing.T) {
	b := newPatternBed(t)
	b.inFlight.share.limit = 1
	second := b.deliver(configMap("second", 110, "c"))
	if b.postponement(second) == 0 {
		t.Fatalf("it is finished with %v, want it postponed", b.done[second])
	}
	again := &events.Delivery{Change: second.Change, Seq: second.Seq, StoredAt: second.StoredAt, Deliveries: 2, Received: b.now}
	b.take(again)
	if wait := b.postponement(again); wait < 10*time.Minute || wait > 12*time.Minute {
		t.Fatalf("the second time it is postponed for %s, want 10m to 12m", wait)
	}
	b.inFlight.share.limit = 2
	last := &events.Delivery{Change: second.Change, Seq: second.Seq, StoredAt: second.StoredAt, Deliveries: 3, Received: b.now}
	b.take(last)
	if !b.gathering.has(b.held.Key(), last.Change.Source) || b.inFlight.share.has(last.Change.Source) {
		t.Error("it is not taken, want the workload to wait with it")
	}
	b.wantCount("in the end")
}

func TestAnEventIsPostponedForAnHourAtMost(t *testing.T) {
	const m = time.Minute
	for deliveries, shortest := range []time.Duration{5 * m, 5 * m, 10 * m, 20 * m, 40 * m, 60 * m, 60 * m, 60 * m} {
		for range 100 {
			if got := postponement(deliveries); got < shortest || got > shortest*6/5 {
				t.Errorf("after %d deliveries: got %s, want from %s to %s", deliveries, got, shortest, shortest*6/5)
			}
		}
	}
}

// A pod that starts meanwhile has what was postponed.
func TestContentThatCameAndWentWhileItWasPostponedIsRolled(t *testing.T) {
	b := newPatternBed(t)
	b.held.Rolled = map[string]workload.RolledFor{"configmap/second": {Fingerprint: fp("a"), Version: "90", UID: "uid-second"}}
	b.inFlight.share.limit = 1
	b.deliver(configMap("second", 110, "c"))
	b.now = b.now.Add(time.Minute)
	b.inFlight.share.limit = 10
	b.deliver(configMap("second", 120, "a"))
	c := b.pending().changes[configMap("second", 120, "a").Source]
	if c == nil {
		t.Fatal("nothing is pending, want the content that came back to be decided")
	}
	if decision := b.intake.policy.Decide(b.held, c.change, b.pending().past(c, b.now)); decision.Reason != plan.Changed {
		t.Errorf("got %s, want %s", decision.Reason, plan.Changed)
	}
}

func TestAHigherWaveWaitsForOneWhoseChangeIsPostponed(t *testing.T) {
	b := newPatternBed(t)
	b.inFlight.share.limit = 1
	higher := workloadOf(t, "auto", workload.Reference{Kind: events.KindConfigMap, Name: "second"}, named("higher", func(w *workload.Workload) { w.Wave = 1 }))
	b.dispatcher.index.observe(higher, false)
	second := b.deliver(configMap("second", 110, "c"))
	if peer := b.dispatcher.admission.waves.stop(higher, second.Change.Source); peer != b.held {
		t.Errorf("it waits for %v, want it to wait for the lower wave", peer)
	}
}

// What a record names is taken for what the pods have.
func TestNothingIsRecordedOfASourceWhoseEventIsPostponed(t *testing.T) {
	b := newPatternBed(t)
	b.inFlight.share.limit = 1
	second := b.deliver(configMap("second", 110, "c"))
	if b.recorder.isDecided(second.Change, true) {
		t.Error("it counts as decided")
	}
	if got := b.inFlight.sources(second.Seq); got != 2 {
		t.Errorf("%d sources have events that are not acked, want 2", got)
	}
	b.inFlight.share.limit = 10
	b.take(&events.Delivery{Change: second.Change, Seq: second.Seq, StoredAt: second.StoredAt, Deliveries: 2, Received: b.now})
	if !b.recorder.isDecided(second.Change, true) {
		t.Error("it does not count as decided after it was taken")
	}
}

// An event that was read again is on the stream for nobody.
func TestAnEventThatWasReadAgainIsNotPostponed(t *testing.T) {
	b := newPatternBed(t)
	b.inFlight.share.limit = 1
	second := b.publish(configMap("second", 110, "c"))
	b.intake.recall(t.Context(), answer{question{workload: b.held.Key(), source: second.Change.Source}, second})
	if !b.gathering.has(b.held.Key(), second.Change.Source) || len(b.done) != 0 {
		t.Errorf("it is not taken, or finished: %v", b.done)
	}
}

func TestTheShareCountsWhatTheWorkloadsOfANamespaceWaitWith(t *testing.T) {
	b := newPatternBed(t)
	b.wantCount("with one change")
	b.deliver(configMap("first", 110, "c"))
	b.wantCount("after a later one of the source")
	b.deliver(configMap("second", 120, "c"))
	gone := configMap("second", 120, "c")
	gone.Verb, gone.Changed = events.VerbDeleted, nil
	b.deliver(gone)
	b.wantCount("after a source has gone")
	r := b.patch()
	b.deliver(configMap("first", 130, "d"))
	b.deliver(configMap("third", 140, "d"))
	b.wantCount("while it is patched")
	b.completion.finish(t.Context(), patchResult{roll: r, err: errors.New("no answer")})
	b.wantCount("after a patch that failed")
	b.concluder.releaseAll(t.Context(), b.pending(), plan.WorkloadGone)
	b.gathering.drop(b.pending())
	b.wantCount("in the end")
}

func TestTheShareIsSmallerWhileManyNamespacesWait(t *testing.T) {
	s := newShare(time.Now, testOptions().Logger)
	s.limit, s.most = 100, 400
	for namespace, changes := range map[string]int{"little": 9, "much": 11, "a": 90, "b": 90, "c": 90, "d": 90} {
		for range changes {
			s.add(namespace)
		}
	}
	for namespace, want := range map[string]bool{"little": false, "much": false, "a": false} {
		if got := s.isUsedUp(namespace); got != want {
			t.Errorf("%s has used up its share: %t, want %t", namespace, got, want)
		}
	}
	for range 20 {
		s.add("e")
	}
	for namespace, want := range map[string]bool{"little": false, "new": false, "much": true, "a": true} {
		if got := s.isUsedUp(namespace); got != want {
			t.Errorf("while many wait, %s has used up its share: %t, want %t", namespace, got, want)
		}
	}
}

func TestThePostponedAreForgottenThatTheStreamHasDropped(t *testing.T) {
	b := newPatternBed(t)
	b.inFlight.share.limit = 1
	second := b.deliver(configMap("second", 110, "c"))
	b.prune()
	if !b.inFlight.share.has(second.Change.Source) {
		t.Error("it is forgotten before the stream can have dropped it")
	}
	b.now = b.now.Add(25 * time.Hour)
	b.prune()
	if b.inFlight.share.has(second.Change.Source) {
		t.Error("it is still known after a day without a delivery")
	}
}
