package sources

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// waitingRoom tries sources as the queue does, in a namespace whose budget is six events of one key per hour and that has used up 24 at once.
type waitingRoom struct {
	*testing.T
	now     time.Time
	r       *reconciler
	entries map[int]*queueEntry
	// keys is how many keys a source has, beyond none.
	keys map[int]int
}

func newWaitingRoom(t *testing.T) (*waitingRoom, *publications) {
	t.Helper()
	room := &waitingRoom{T: t, now: epoch, entries: make(map[int]*queueEntry), keys: make(map[int]int)}
	r, bus, _ := throttled(t, 6, func() time.Time { return room.now })
	room.r = r
	for i := range 4 * 6 {
		if after := room.try(-1 - i); after != 0 {
			t.Fatalf("event %d waits for %s", i+1, after)
		}
	}
	r.assessors[events.KindSecret] = func(source events.Source, before *lastEvent, created bool) (events.Change, bool) {
		change, ok := always(source, before, created)
		change.Keys = make(map[string]events.Key)
		for i, keys := range room.keys {
			if source == inNamespace("noisy", i) {
				for k := range keys {
					change.Keys[fmt.Sprint(k)] = events.Key{Fingerprint: printed("0a", "1")}
				}
				return change, ok && keys >= 0
			}
		}
		return change, ok
	}
	return room, bus
}

// try returns for how long a source waits. It forgets a source that does not wait.
func (w *waitingRoom) try(i int) time.Duration {
	w.Helper()
	if w.entries[i] == nil {
		w.entries[i] = &queueEntry{created: true}
	}
	err := w.r.reconcile(w.Context(), inNamespace("noisy", i), w.entries[i])
	if turn, ok := errors.AsType[*turnError](err); ok {
		return turn.after.Round(time.Minute)
	}
	must(w, err)
	delete(w.entries, i)
	return 0
}

func TestASourceWaitsShorterWhenOthersOfItsNamespaceAreGone(t *testing.T) {
	w, _ := newWaitingRoom(t)
	for i := range 480 {
		w.try(i)
	}
	if after := w.try(480); after.Round(time.Hour) != 80*time.Hour {
		t.Fatalf("it waits for %s, want 80 hours", after)
	}
	for i := range 480 {
		w.keys[i] = -1 // It is gone.
		w.try(i)
	}
	if after := w.try(480); after != 10*time.Minute {
		t.Errorf("when all others are gone it waits for %s, want 10 minutes", after)
	}
	if n := w.r.throttle.length(); n != 1 {
		t.Errorf("%d sources wait, want one", n)
	}
}

func TestASourceThatGrowsWhileItWaitsHasItsTurnAsABigOne(t *testing.T) {
	w, bus := newWaitingRoom(t)
	if after := w.try(0); after != 10*time.Minute {
		t.Fatalf("it waits for %s", after)
	}
	w.now = w.now.Add(10 * time.Minute)
	w.keys[0] = 1000
	after := w.try(0)
	if after < 5*time.Hour || len(bus.published) != 24 {
		t.Fatalf("with 1000 keys it waits for %s, want hours", after)
	}
	w.now = w.now.Add(after + time.Minute)
	if after = w.try(0); after != 0 {
		t.Errorf("it waits for another %s", after)
	}
	if after = w.try(1); after != 9*time.Minute {
		t.Errorf("the next one waits for %s, want 9 minutes", after)
	}
}

// Changes keep coming at ten times the budget.
func TestEachSourceHasItsTurnWhileOthersKeepComing(t *testing.T) {
	w, _ := newWaitingRoom(t)
	const first, fickle, minutes = 30, 7, 400
	bound := make(map[int]time.Time)
	for i := range first {
		bound[i] = w.now.Add(w.try(i) + time.Minute)
	}
	bound[fickle] = w.now.Add(minutes * time.Minute) // It goes to the end once.
	for minute := range minutes {
		w.now = w.now.Add(time.Minute)
		w.keys[fickle] = minute % 2
		for i := range first + minute {
			if w.entries[i] == nil && i < first+minute-1 {
				continue // It is published.
			}
			if w.try(i) > 0 && w.now.After(bound[i]) && i < first {
				t.Fatalf("after %d minutes source %d still waits, want it published %s after the start", minute, i, bound[i].Sub(epoch))
			}
		}
	}
	for i := range first {
		if w.entries[i] != nil {
			t.Errorf("source %d is not published", i)
		}
	}
	if len(w.entries) < minutes/2 {
		t.Errorf("%d newcomers wait, want most of them", len(w.entries))
	}
}

func TestASourceIsLookedAtLongBeforeItsTurn(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		began := time.Now()
		p.add(testSource, true)
		p.wait(testSource, mustTake(t, p, testSource), 80*time.Hour)
		mustTake(t, p, testSource)
		if after := time.Since(began); after != turnCheck {
			t.Errorf("it is looked at after %s, want %s", after, turnCheck)
		}
		p.done(testSource)
	})
}
