package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAChangeThatConcernsAWorkloadWaitsUntilItIsQuiet(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	options := DefaultOptions()
	now := written
	d := newDebounce(options.Settle, options.SettleMax)
	first, last := eventOf(changeOf(nil)), eventOf(changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "101", "101" }))
	d.add(w, first, nil, now)
	if due, _ := d.next(); !due.Equal(written.Add(options.Settle)) {
		t.Errorf("the first change is due %s later, want %s", due.Sub(written), options.Settle)
	}
	now = written.Add(options.Settle / 2)
	given := d.add(w, last, nil, now)
	if due, _ := d.next(); !due.Equal(now.Add(options.Settle)) {
		t.Errorf("a further change is due %s later, want %s", due.Sub(now), options.Settle)
	}
	c := d.byKey[w.Key()].changes[db]
	if len(d.byKey) != 1 || c.change.ResourceVersion != "101" || c.event != last || last.open != 1 ||
		len(given) != 1 || given[0] != (replaced{first, last}) {
		t.Errorf("%d workloads wait, with %+v; want one change, the last, whose event has taken the place of the first", len(d.byKey), c)
	}
	now = written.Add(options.SettleMax - options.Settle/2)
	d.add(w, last, nil, now)
	if due, _ := d.next(); !due.Equal(written.Add(options.SettleMax)) {
		t.Errorf("a change at the last moment is due %s after the first, want %s", due.Sub(written), options.SettleMax)
	}
}

func TestTheQueueGivesWhatIsDueInItsOrder(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	q := newDebounce(time.Second, time.Minute)
	key := func(name string) workload.Key { return workload.Key{Kind: "deployment", Namespace: "shop", Name: name} }
	for name, wait := range map[string]time.Duration{"late": 3 * time.Second, "early": time.Second, "middle": 2 * time.Second} {
		q.schedule(newPending(key(name), now), now.Add(wait))
	}
	if p := q.pop(now, inAny); p != nil {
		t.Errorf("before any is due: got %s", p.key.Name)
	}
	if due, ok := q.next(); !ok || !due.Equal(now.Add(time.Second)) {
		t.Errorf("next: got %s, %t", due, ok)
	}
	// A further change moves it behind the others.
	q.schedule(q.byKey[key("early")], now.Add(4*time.Second))
	for _, want := range []string{"middle", "late", "early"} {
		p := q.pop(now.Add(5*time.Second), inAny)
		if p == nil || p.key.Name != want {
			t.Fatalf("got %v, want %s", p, want)
		}
		q.drop(p)
	}
	if len(q.byKey) != 0 || len(q.order.items) != 0 {
		t.Errorf("left behind: %v, %v", q.byKey, q.order.items)
	}
}

func TestWhatIsHeldComesUpWhenItIsReleased(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	q := newDebounce(time.Second, time.Minute)
	w := workloadOf(t, "auto", wholeDB, nil)
	q.add(w, eventOf(changeOf(nil)), nil, now.Add(-time.Second))
	p := q.pop(now, inAny)
	q.hold(p, plan.Limit)
	if again := q.pop(now.Add(time.Hour), inAny); again != nil || !p.isHeld() {
		t.Error("it came up while it was held")
	}
	if q.add(w, eventOf(changeOf(nil)), nil, now); q.byKey[p.key] != p || len(q.order.items) != 0 {
		t.Error("a further change of a held workload begins another entry")
	}
	q.releaseAll(now.Add(time.Hour))
	if again := q.pop(now.Add(time.Hour), inAny); again != p || p.isHeld() || q.countHeld() != 0 {
		t.Error("it did not come up when it was released")
	}
}

func TestAFailedPatchIsTriedAgainLaterAndLater(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	d := newDebounce(time.Second, time.Minute)
	p := pendingOf(w, changeOf(nil))
	for attempt, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		delay, _ := d.retry(p, written)
		due, ok := d.next()
		if got := due.Sub(written); !ok || got != delay || got.Seconds() < float64(want) || got.Seconds() > 1.1*float64(want) {
			t.Errorf("after attempt %d it is tried again in %s, want %ds and up to a tenth more", attempt+1, got, want)
		}
		p = d.pop(due, inAny)
		d.drop(p)
	}
}

func TestAFailedPatchIsTriedAgainWithWhatCameSince(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	d := newDebounce(time.Second, time.Minute)
	before := changeOf(func(c *events.Change) { c.ResourceVersion = "90" })
	older := d.pend(w, changeOf(nil))
	older.changes[db].from = &before
	older.changes[db].event = eventOf(changeOf(nil))
	older.changes[app] = &pendingChange{change: changeOf(func(c *events.Change) { c.Source = app })}
	d.drop(older)

	later := changeOf(func(c *events.Change) { c.ResourceVersion = "110" })
	newest := d.pend(w, later)
	newest.changes[db].from = &older.changes[db].change
	newest.changes[db].event = eventOf(later)
	_, given := d.retry(older, written)

	due, _ := d.next()
	p := d.pop(due, inAny)
	if p != newest || d.pop(due, inAny) != nil {
		t.Fatalf("%d entries wait, want the newest alone", len(d.byKey))
	}
	c := p.changes[db]
	if len(p.changes) != 2 || c.change.ResourceVersion != "110" || c.from != nil || c.event.delivery.Change.ResourceVersion != "110" || p.attempts != 1 {
		t.Errorf("it is tried again with %+v of %d sources, attempt %d; want the last change, from what is not known", c, len(p.changes), p.attempts)
	}
	if len(given) != 1 || given[0] != (replaced{older.changes[db].event, c.event}) {
		t.Errorf("%+v give way, want the event of the older change", given)
	}
}

func TestANewChangeDoesNotShortenTheDelayAfterAFailure(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	d := newDebounce(time.Second, 10*time.Second)
	p := pendingOf(w, changeOf(nil))
	for range 6 {
		d.retry(p, written)
	}
	due, _ := d.next()
	d.add(w, eventOf(changeOf(func(c *events.Change) { c.ResourceVersion = "110" })), nil, written.Add(20*time.Second))
	if next, _ := d.next(); !next.Equal(due) {
		t.Errorf("after a new change it is due after %s, want after %s as before", next.Sub(written), due.Sub(written))
	}
	d.add(w, eventOf(changeOf(func(c *events.Change) { c.ResourceVersion = "120" })), nil, due.Add(time.Minute))
	if next, _ := d.next(); next.Before(due) || d.pop(due.Add(time.Minute+d.quiet), inAny) == nil {
		t.Errorf("a change after the delay is due after %s", next.Sub(written))
	}
}
