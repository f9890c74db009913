package actuate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestWhatIsPendingOutlivesThatTheKindIsNotServed(t *testing.T) {
	annotations := rollOn("auto")
	annotations[events.AnnotationHold] = "tofu"
	c := newCluster(t, deploymentOf("web", "db", annotations))
	now, options := time.Now(), c.options()
	options.Now = func() time.Time { return now }
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := a.index.read(deployments, c.get("web"))
	w.Version = "150"
	a.index.observe(w, false)
	l := newLoop(a.surroundings, unwritten(a))
	change := changeOf(func(ch *events.Change) { ch.ResourceVersion, ch.ChangedAt = "100", "100" })
	e := eventOf(change)
	e.delivery.Received, e.open = now, 1
	l.intake.consider(t.Context(), e, w, nil)
	now = now.Add(20 * time.Second)
	l.dispatcher.dispatch(t.Context())
	if !l.gathering.isHeldFor(w.Key(), plan.OnHold) {
		t.Fatal("not held")
	}
	store := &kindStore{index: a.index, kind: deployments, synced: func() {}, seen: "150"}
	store.clear(now)
	l.gathering.wake(w.Key(), now)
	l.dispatcher.dispatch(t.Context())
	if !l.gathering.has(w.Key(), change.Source) {
		t.Fatal("while the kind is not served, the change that was held is forgotten")
	}
	back, _ := a.index.read(deployments, c.get("web"))
	back.Version = "160"
	if err := store.Replace([]any{back}, "160"); err != nil {
		t.Fatal(err)
	}
	later := changeOf(func(ch *events.Change) { ch.ResourceVersion, ch.ChangedAt = "155", "155" })
	l.intake.recall(t.Context(), answer{
		question: question{workload: w.Key(), source: change.Source, linked: true},
		delivery: &events.Delivery{Change: later, Seq: 7, Received: now, Deliveries: 1},
	})
	if p := l.gathering.byKey[w.Key()]; p == nil || p.changes[change.Source] == nil || p.changes[change.Source].change.ResourceVersion != "155" {
		t.Errorf("when the kind is back, pending is %+v, want the change of meanwhile", p)
	}
	if err := store.Replace(nil, "170"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	l.dispatcher.dispatch(t.Context())
	if l.gathering.has(w.Key(), change.Source) {
		t.Error("what was pending for a workload that is gone is pending still")
	}
}

// An earlier leader may have had them wait for just these.
func TestWhatIsTakenWhileAKindIsNotServedIsAskedForAgain(t *testing.T) {
	web := workloadOf(t, "auto", wholeDB, nil)
	now, options := written, testOptions()
	options.Now = func() time.Time { return now }
	l := loopOf(t, options)
	store := &kindStore{index: l.intake.index, kind: deployments, namespace: "shop", synced: func() {}}
	l.intake.index.unserve(store.place(), now)
	l.missed.look()
	l.intake.inFlight.done = func(*events.Delivery, context.Context, error) {}
	l.intake.take(t.Context(), &events.Delivery{Change: changeOf(nil), Seq: 1, Deliveries: 2})
	var asked []question
	ask := func(q question) { asked = append(asked, q) }
	l.missed.advance(ask)
	if len(asked) > 0 {
		t.Errorf("while the kind is not served, asked %v", asked)
	}
	web.Rolled = map[string]workload.RolledFor{"secret/db": workload.Owed(workload.RolledFor{Fingerprint: fp("a")})}
	if err := store.Replace([]any{web}, "160"); err != nil {
		t.Fatal(err)
	}
	l.missed.advance(ask)
	want := []question{{workload: web.Key(), source: db}}
	for _, source := range web.Owed() {
		want = append(want, question{workload: web.Key(), source: source, owed: true})
	}
	if len(want) != 2 || !slices.Equal(asked, want) {
		t.Errorf("when the kind is served, asked %v, want %v", asked, want)
	}
	l.missed.advance(ask)
	if len(asked) != len(want) {
		t.Errorf("asked again: %v", asked)
	}
}

func TestAKindThatIsNotServedForADayIsNotWaitedFor(t *testing.T) {
	x, now := indexOf(), written
	m := newMissed(x, func() time.Time { return now })
	place := kindPlace{kind: "widget"}
	x.unserve(place, now)
	m.take(db)
	key := workload.Key{Kind: "widget", Namespace: "shop", Name: "web"}
	if !x.isUnserved(key, now) || len(m.sources[place]) != 1 {
		t.Fatal("it is not waited for")
	}
	now = now.Add(unservedFor)
	m.advance(func(question) { t.Error("nobody is there to ask for") })
	m.take(db)
	if x.isUnserved(key, now) || len(m.sources) > 0 {
		t.Errorf("it is waited for, with what came: %v", m.sources)
	}
}
