package actuate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// userChanged makes a change one of the key user. The key password changed before, at 95.
func userChanged(c *events.Change) {
	c.Changed = []string{"user"}
	c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
}

// password is a reference to one key of the Secret db.
var password = workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}

// The key was added, then the workload was created, then the actuator restarted, then another key changed.
func TestAWorkloadCreatedAfterItsKeyChangedIsNotRolledForAnotherKey(t *testing.T) {
	w := workloadOf(t, "auto", password, nil)
	other := workloadOf(t, "auto", password, named("other", nil))
	l := loopOf(t, testOptions(), w, other)
	reads := 0
	l.dater.written = func(context.Context, events.Change) (map[string]time.Time, error) {
		reads++
		return map[string]time.Time{"95": w.Created.Add(-time.Hour)}, nil
	}
	l.intake.take(t.Context(), &events.Delivery{Change: changeOf(userChanged), Received: written})
	for _, p := range l.debounce.byKey {
		l.debounce.schedule(p, written)
	}
	l.dispatcher.dispatch(t.Context())
	if held := newSnapshot(l.rollouts).held[plan.HistoryPending]; held != 2 || !l.patcher.idle() {
		t.Fatalf("%d workloads wait for the history, want 2", held)
	}
	answer := <-l.dater.answers
	l.debounce.date(l.dater.waited(answer), answer, written)
	l.dispatcher.dispatch(t.Context())
	for range 2 {
		result := <-l.patcher.results
		if reason := result.task.decisions[0].Reason; reason != plan.PodsNewer || result.task.rolls {
			t.Errorf("decided %s, want %s", reason, plan.PodsNewer)
		}
	}
	if reads != 1 || len(l.dater.asked) != 0 {
		t.Errorf("%d reads for %d workloads, want one; %d are open", reads, 2, len(l.dater.asked))
	}
}

func TestAHistoryThatCannotBeReadDelaysARollAndNoMore(t *testing.T) {
	w := workloadOf(t, "auto", password, nil)
	l := loopOf(t, testOptions(), w)
	l.dater.written = func(context.Context, events.Change) (map[string]time.Time, error) {
		return nil, errors.New("no answer")
	}
	p := l.debounce.pend(w, changeOf(userChanged))
	l.dispatcher.act(t.Context(), p, w)
	answer := <-l.dater.answers
	l.debounce.date(l.dater.waited(answer), answer, written)
	v := l.dispatcher.decide(p, w)
	if !v.rolls || len(v.undated) != 0 {
		t.Errorf("got %+v, want a roll", v)
	}
}

func TestTheHistoryDatesChanges(t *testing.T) {
	event := func(version string, minutes int, mutate func(*events.Change)) events.Change {
		return changeOf(func(c *events.Change) {
			c.ResourceVersion, c.WrittenAt = version, written.Add(time.Duration(minutes)*time.Minute)
			if mutate != nil {
				mutate(c)
			}
		})
	}
	now := event("100", 0, userChanged)
	tests := []struct {
		name    string
		history []events.Change
		want    map[string]int // minutes by version
	}{
		{"none", nil, map[string]int{}},
		{"the change itself", []events.Change{event("90", -90, nil), event("95", -60, nil)}, map[string]int{"95": -60}},
		{"the oldest event after the change", []events.Change{event("90", -90, nil), event("97", -30, nil), event("98", -20, nil)}, map[string]int{"95": -30}},
		{"the event that is asked about", []events.Change{event("95", -60, nil), now}, map[string]int{"95": -60, "100": 0}},
		{"not a deletion", []events.Change{event("96", -40, func(c *events.Change) { c.Verb = events.VerbDeleted })}, map[string]int{}},
		{"not an earlier object of this name", []events.Change{event("96", -40, func(c *events.Change) { c.UID = "other" })}, map[string]int{}},
		{"not an event without a time", []events.Change{event("96", 0, func(c *events.Change) { c.WrittenAt = time.Time{} })}, map[string]int{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDating(now)
			for _, earlier := range test.history {
				d.add(earlier)
			}
			want := make(map[string]time.Time)
			for version, minutes := range test.want {
				want[version] = written.Add(time.Duration(minutes) * time.Minute)
			}
			if diff := cmp.Diff(want, d.written); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangesAreDatedByTheHistoryOfTheirSource(t *testing.T) {
	bus := busOf(t)
	var seq uint64
	for i, version := range []string{"95", "98", "100"} {
		change := changeOf(func(c *events.Change) {
			userChanged(c)
			c.ResourceVersion, c.WrittenAt, c.Time = version, written.Add(time.Duration(i)*time.Minute), written
			c.ChangedAt = version
		})
		seq = mustPublish(t, bus, change, seq)
	}
	var got map[string]time.Time
	natstest.Publish(t, func() (err error) {
		got, err = writtenBy(t.Context(), &bus.Reader, changeOf(userChanged))
		return err
	})
	want := map[string]time.Time{"95": written, "100": written.Add(2 * time.Minute)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
