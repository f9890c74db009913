package actuate

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestWhatIsPendingOutlivesThatTheKindIsNotServed(t *testing.T) {
	annotations := rollOn("auto")
	annotations[events.AnnotationHold] = "tofu"
	c := newStreamless(t, deploymentOf("web", "db", annotations))
	now, options := time.Now(), c.options()
	options.Now = func() time.Time { return now }
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := a.index.Read(deployments, c.get("web"))
	w.Version = "150"
	a.index.Listed(w, "")
	l := newLoop(a.surroundings, unwritten(a))
	change := changeOf(func(ch *events.Change) { ch.ResourceVersion, ch.ChangedAt = "100", "100" })
	e := eventOf(change)
	e.delivery.Received, e.open = now, 1
	l.intake.consider(t.Context(), e, w, nil)
	now = now.Add(20 * time.Second)
	l.dispatcher.dispatch(t.Context())
	if !l.debounce.isHeldFor(w.Key(), plan.OnHold) {
		t.Fatal("not held")
	}
	everywhere := inventory.Place{Kind: deployments.Name}
	a.index.Unserve(everywhere, now)
	a.index.Forget(w.Key(), w.ID.UID, "150")
	l.debounce.wake(w.Key(), now)
	l.dispatcher.dispatch(t.Context())
	if !l.debounce.has(w.Key(), change.Source) {
		t.Fatal("while the kind is not served, the change that was held is forgotten")
	}
	reported := len(l.outbox.waiting)
	now = now.Add(kindRetry)
	l.dispatcher.dispatch(t.Context())
	if held := newSnapshot(l.rollouts).held[plan.KindNotServed]; held != 1 || len(l.outbox.waiting) != reported {
		t.Errorf("while the kind is not served, %d workloads are counted as held for that, want 1; %d more outcomes are reported", held, len(l.outbox.waiting)-reported)
	}
	back, _ := a.index.Read(deployments, c.get("web"))
	back.Version = "160"
	a.index.Listed(back, "150")
	a.index.Serve(everywhere)
	later := changeOf(func(ch *events.Change) { ch.ResourceVersion, ch.ChangedAt = "155", "155" })
	l.intake.recall(t.Context(), answer{
		question: question{workload: w.Key(), source: change.Source, why: recallLinked},
		delivery: &events.Delivery{Change: later, Seq: 7, Received: now, Deliveries: 1},
	})
	if p := l.debounce.byKey[w.Key()]; p == nil || p.changes[change.Source] == nil || p.changes[change.Source].change.ResourceVersion != "155" {
		t.Errorf("when the kind is back, pending is %+v, want the change of meanwhile", p)
	}
	a.index.Forget(back.Key(), back.ID.UID, "160")
	now = now.Add(time.Minute)
	l.dispatcher.dispatch(t.Context())
	if l.debounce.has(w.Key(), change.Source) {
		t.Error("what was pending for a workload that is gone is pending still")
	}
}

// It makes no difference which leader took an event meanwhile, and acked it without a workload.
func TestWorkloadsAreAskedForAllTheirSourcesWhenTheirKindIsServedAgain(t *testing.T) {
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	web := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Refs = append(w.Refs, workload.Reference{Kind: events.KindConfigMap, Name: "app"}, workload.Reference{Kind: events.KindSecret, Name: "tls"})
		w.Rolled = map[string]workload.RolledFor{
			"secret/db":      {Fingerprint: fp("a")},
			"configmap/app":  workload.Owed(workload.RolledFor{Fingerprint: fp("a")}),
			"secret/another": {Fingerprint: fp("a")}, // It does not read this one.
		}
	})
	app := events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	tls := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "tls"}
	want := map[question]int{
		{workload: web.Key(), source: db, why: recallReturned}:  1,
		{workload: web.Key(), source: app, why: recallReturned}: 1,
		{workload: web.Key(), source: app, why: recallOwed}:     1,
		{workload: web.Key(), source: tls, why: recallReturned}: 1,
	}
	shop := inventory.Place{Kind: deployments.Name, Namespace: "shop"}
	other := inventory.Place{Kind: deployments.Name, Namespace: "other"}
	l := newLoop(a.surroundings, unwritten(a))
	asked := make(map[question]int)
	advance := func(l *loop) map[question]int {
		clear(asked)
		l.returned.advance(func(q question) { asked[q]++ })
		return asked
	}
	list := func(since string) {
		a.index.Listed(web, since)
		a.index.Serve(shop)
	}
	remove := func() {
		a.index.Unserve(shop, written)
		a.index.Forget(web.Key(), web.ID.UID, "160")
	}
	list("")
	if got := advance(l); len(got) > 0 {
		t.Errorf("of a kind that was always served, asked %v", got)
	}
	a.index.Unserve(other, written)
	a.index.Serve(other)
	remove()
	if got := advance(l); len(got) > 0 {
		t.Errorf("while the kind is not served, asked %v", got)
	}
	list("160")
	for _, leader := range []*loop{l, newLoop(a.surroundings, unwritten(a))} {
		if diff := cmp.Diff(want, advance(leader), cmp.AllowUnexported(question{})); diff != "" {
			t.Errorf("when it is served again, asked (-want +got):\n%s", diff)
		}
		if got := advance(leader); len(got) > 0 {
			t.Errorf("asked once more: %v", got)
		}
	}
	remove()
	list("160")
	if got := advance(l); len(got) != len(want) {
		t.Errorf("when it is served again for the second time, asked %v", got)
	}
}

// When a kind is installed for the first time, its workloads are seen for the first time, too.
func TestOfAKindThatIsServedAgainOnlyWhatIsMissedIsGathered(t *testing.T) {
	wanted := func(at time.Time) func(*workload.Workload) { return func(w *workload.Workload) { w.Written = at } }
	recorded := func(fingerprint, version string) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Written = written
			w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fingerprint, Version: version, UID: "uid"}}
		}
	}
	tests := []struct {
		name string
		web  func(*workload.Workload)
		want bool
	}{
		{"the record is of before the change", recorded(fp("a"), "90"), true},
		{"the record is of the change", recorded(fp("b"), "100"), false},
		{"without a record, and it has wanted the source before the change", wanted(written.Add(-time.Minute)), true},
		{"without a record, and it wants the source since the change", wanted(written), false},
		{"without a record, and nobody knows since when it wants the source", wanted(time.Time{}), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			web := workloadOf(t, "auto", wholeDB, test.web)
			l := loopOf(t, testOptions(), web)
			l.intake.inFlight.done = func(*events.Delivery, context.Context, error) {}
			l.intake.recall(t.Context(), answer{
				question: question{workload: web.Key(), source: db, why: recallReturned},
				delivery: &events.Delivery{Change: changeOf(nil), Seq: 7, Received: written, Deliveries: 1},
			})
			if got := l.debounce.has(web.Key(), db); got != test.want || l.outbox.unpublished > 0 {
				t.Errorf("it is gathered: %t, want %t; %d outcomes are to be published, want none", got, test.want, l.outbox.unpublished)
			}
		})
	}
}
