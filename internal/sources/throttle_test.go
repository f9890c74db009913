package sources

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

// throttled returns a reconciler of sources that have always changed, in namespaces whose budget is eventsAnHour events of one key per hour.
func throttled(t *testing.T, eventsAnHour int, now func() time.Time) (*reconciler, *publications, *testkit.Log) {
	t.Helper()
	b := &publications{}
	r := reconcilerOf(t, b, always)
	log := &testkit.Log{}
	r.throttle = newThrottle(eventsAnHour*weight(events.Change{Source: inNamespace("noisy", 0)}), now, slog.New(slog.NewJSONHandler(log, nil)))
	return r, b, log
}

// inNamespace names one of many sources.
func inNamespace(namespace string, i int) events.Source {
	return events.Source{Kind: events.KindSecret, Namespace: namespace, Name: fmt.Sprintf("db-%03d", i)}
}

func TestANamespaceOverItsBudgetWaitsAndNoOtherDoes(t *testing.T) {
	now := epoch
	r, b, log := throttled(t, 6, func() time.Time { return now })
	entries := make(map[int]*queueEntry)
	publish := func(i int) time.Duration {
		t.Helper()
		if entries[i] == nil {
			entries[i] = &queueEntry{}
		}
		err := r.reconcile(t.Context(), inNamespace("noisy", i), entries[i])
		if turn, ok := errors.AsType[*turnError](err); ok {
			return turn.after
		}
		testkit.Must(t, err)
		return 0
	}
	for i := range 24 {
		if after := publish(i); after != 0 {
			t.Fatalf("the event %d, within the budget of four hours, waits for %s", i+1, after)
		}
	}
	for i, want := range []time.Duration{10 * time.Minute, 20 * time.Minute, 30 * time.Minute} {
		if after := publish(24 + i); after.Round(time.Second) != want {
			t.Errorf("the event %d waits for %s, want %s", 25+i, after, want)
		}
	}
	if n := r.throttle.length(); n != 3 || len(b.published) != 24 {
		t.Errorf("%d events wait and %d are published, want 3 and 24", n, len(b.published))
	}
	if err := r.reconcile(t.Context(), inNamespace("quiet", 0), &queueEntry{}); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if got := strings.Count(log.String(), "its changes wait"); got != 1 || !strings.Contains(log.String(), `"namespace":"noisy"`) {
		t.Errorf("the log has %d lines about it, want one that names the namespace:\n%s", got, log)
	}
	// A source that changes again while it waits keeps its turn.
	now = now.Add(10 * time.Minute)
	if publish(25) == 0 || publish(26) == 0 || publish(24) != 0 {
		t.Error("ten minutes later: want the first of those that wait to be published, and no other")
	}
	now = now.Add(20 * time.Minute)
	if publish(26) != 0 || publish(25) != 0 || r.throttle.length() != 0 {
		t.Errorf("half an hour later: %d wait, want none", r.throttle.length())
	}
}

func TestWhatDoesNotCountTowardsTheBudget(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		source                   events.Source
		before                   *kinds.LastEvent
		changedAt                string
		created, unsettled, want bool
	}{
		{name: "a change does", source: testSource, before: kinds.UnreadableEvent(1), changedAt: "1", want: true},
		{name: "the creation of a source does", source: testSource, changedAt: "1", want: true},
		{name: "the creation of a source that is only observed does", source: testSource, created: true, want: true},
		{name: "the first event of a source that was there does not", source: testSource},
		{name: "an event that the stream has lost does not", source: testSource, before: lostAt(0, kinds.UnreadableEvent(0)), changedAt: "1"},
		{name: "what was found at the start does not", source: testSource, before: kinds.UnreadableEvent(1), changedAt: "1", unsettled: true},
		{name: "a secret in a store does not", source: events.Source{Kind: events.KindOpenBao, Name: "x"}, before: kinds.UnreadableEvent(1), changedAt: "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &reconciler{readiness: &readiness{}}
			r.readiness.complete.Store(!tt.unsettled)
			if got := r.isLimited(tt.before, events.Change{Source: tt.source, ChangedAt: tt.changedAt}, tt.created); got != tt.want {
				t.Errorf("limited: %t", got)
			}
		})
	}
}

func TestTheWeightOfAnEventIsAboutItsSize(t *testing.T) {
	for _, of := range []struct{ keys, length int }{{1, 5}, {events.MaxKeys, 10}, {500, 253}} {
		change := events.Change{
			Cluster: testCluster, Source: testSource, Verb: events.VerbChanged, UID: "u", ResourceVersion: "1", ChangedAt: "1", CreatedAt: "1",
			Created: true, Fingerprint: fingerprint, Time: epoch, Keys: make(map[string]events.Key),
		}
		for i := range of.keys {
			key := fmt.Sprintf("%0*d", of.length, i)
			change.Keys[key], change.Changed = events.Key{Fingerprint: fingerprint}, append(change.Changed, key)
		}
		encoded, err := change.Encode()
		testkit.Must(t, err)
		header, data, err := encoded.Message()
		testkit.Must(t, err)
		msg := &nats.Msg{Subject: encoded.Subject, Header: header, Data: data}
		if got, size := weight(change), msg.Size(); got < size*2/3 || got > size*2 {
			t.Errorf("with %+v it weighs %d bytes and has %d", of, got, size)
		}
	}
}

// waitingRoom has sources that wait in a namespace whose budget is six events of one key per hour, and that has used up 24 at once.
type waitingRoom struct {
	*testing.T
	now      time.Time
	throttle *throttle
	held     map[int]*reservation
}

func newWaitingRoom(t *testing.T) *waitingRoom {
	t.Helper()
	w := &waitingRoom{T: t, now: epoch, held: make(map[int]*reservation)}
	w.throttle = newThrottle(6*weight(events.Change{Source: inNamespace("noisy", 0)}), func() time.Time { return w.now }, slog.New(slog.DiscardHandler))
	for i := range 4 * 6 {
		if after := w.try(i, 0); after != 0 {
			t.Fatalf("event %d waits for %s", i+1, after)
		}
	}
	return w
}

// try returns for how long a source with this many keys waits. It forgets a source that does not wait.
func (w *waitingRoom) try(i, keys int) time.Duration {
	w.Helper()
	if w.held[i] == nil {
		w.held[i] = &reservation{}
	}
	change := events.Change{Source: inNamespace("noisy", 0), Keys: make(map[string]events.Key)}
	for k := range keys {
		change.Keys[fmt.Sprint(k)] = events.Key{Fingerprint: fingerprint}
	}
	after := w.throttle.wait(w.Context(), change, w.held[i])
	if after == 0 {
		w.throttle.published(w.held[i])
		delete(w.held, i)
	}
	return after.Round(time.Minute)
}

func TestASourceWaitsShorterWhenOthersOfItsNamespaceAreGone(t *testing.T) {
	w := newWaitingRoom(t)
	for i := range 480 {
		w.try(i, 0)
	}
	if after := w.try(480, 0); after.Round(time.Hour) != 80*time.Hour {
		t.Fatalf("it waits for %s, want 80 hours", after)
	}
	for i := range 480 {
		w.throttle.dropped("noisy", w.held[i])
	}
	if after, n := w.try(480, 0), w.throttle.length(); after != 10*time.Minute || n != 1 {
		t.Errorf("when all others are gone it waits for %s, want 10 minutes; %d sources wait, want one", after, n)
	}
}

// Changes keep coming at ten times the budget.
func TestEachSourceHasItsTurnWhileOthersKeepComing(t *testing.T) {
	w := newWaitingRoom(t)
	const first, fickle, minutes = 30, 7, 400
	bound := make(map[int]time.Time)
	for i := range first {
		bound[i] = w.now.Add(w.try(i, 0) + time.Minute)
	}
	bound[fickle] = w.now.Add(minutes * time.Minute) // It goes to the end once, because it grows.
	for minute := range minutes {
		w.now = w.now.Add(time.Minute)
		for i := range first + minute {
			if w.held[i] == nil && i < first+minute-1 {
				continue // It is published.
			}
			keys := 0
			if i == fickle {
				keys = minute % 2
			}
			if w.try(i, keys) > 0 && w.now.After(bound[i]) && i < first {
				t.Fatalf("after %d minutes source %d still waits, want it published %s after the start", minute, i, bound[i].Sub(epoch))
			}
		}
	}
	for i := range first {
		if w.held[i] != nil {
			t.Errorf("source %d is not published", i)
		}
	}
	if len(w.held) < minutes/2 {
		t.Errorf("%d newcomers wait, want most of them", len(w.held))
	}
}
