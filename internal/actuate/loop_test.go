package actuate

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/health"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAnEventIsDoneWithWhenItsRolloutsArePublished(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	l := loopOf(t, testOptions(), w)
	event := eventOf(changeOf(nil))
	event.open = 1 // so that it is not finished: no message came with it
	p := newPending(w.Key(), written)
	p.add(event, nil)
	r, err := newTask(deployments, w, []plan.Decision{{Source: db, Reason: plan.Changed}}, p)
	if err != nil {
		t.Fatal(err)
	}
	started := startedOutcome(l.completion.outcomes.started(t.Context(), r), w, written)
	l.completion.finish(t.Context(), patchResult{task: r, after: w, started: started})
	if event.open != 2 || l.outbox.unpublished != 1 || len(l.outbox.waiting) == 0 || l.outbox.waiting[0].outcome.Verb != events.VerbStarted {
		t.Fatalf("%d workloads are open and %d unpublished after the patch, with %+v", event.open, l.outbox.unpublished, l.outbox.waiting)
	}
	l.confirm(t.Context(), l.outbox.waiting)
	if event.open != 1 || l.outbox.unpublished != 0 {
		t.Errorf("%d workloads are open and %d unpublished after it was published", event.open, l.outbox.unpublished)
	}
}

func TestWhatIsHeldIsCountedAlthoughItIsLookedAtAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := timedOut(t)
		l.outbox.flushed()
		w := workloadOf(t, "auto", wholeDB, named("held", nil))
		l.intake.index.Listed(w, "")
		p := l.debounce.pend(w, changeOf(nil))
		p.reported = []plan.Reason{plan.PeerFailed}
		l.debounce.hold(p, plan.PeerFailed)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { l.work(ctx) })
		for range 3 {
			<-time.After(overdueCheck)
			synctest.Wait()
			if got := l.snapshots.Load().held[plan.PeerFailed]; got != 1 {
				t.Errorf("%d workloads are held, want 1", got)
			}
		}
		cancel()
		running.Wait()
	})
}

func TestNothingIsDecidedWhileTooManyOutcomesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loopOf(t, testOptions())
		for range outboxSize {
			l.outbox.add(report{outcome: outcomeOf("web")})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { l.work(ctx) })
		l.deliveries <- &events.Delivery{Change: changeOf(nil)}
		synctest.Wait()
		if len(l.deliveries) != 1 {
			t.Error("an event is taken although as many outcomes wait as there may")
		}
		cancel()
		running.Wait()
	})
}

func TestTheProbeSeesTheLoopHangInWhateverItDoes(t *testing.T) {
	nothing := func(*loop) {}
	for _, test := range []struct {
		name            string
		arrange, begins func(*loop)
	}{
		{"a change of a workload", nothing, func(l *loop) { l.dirty.add(workload.Key{}) }},
		{"a delivery", nothing, func(l *loop) { l.deliveries <- &events.Delivery{Change: changeOf(nil)} }},
		{"an answer of the history", nothing, func(l *loop) { l.dater.answers <- dates{} }},
		{"an answer for the recorder", nothing, func(l *loop) { l.recorder.answers <- recordable{} }},
		{"a workload that is due", func(l *loop) {
			l.debounce.schedule(l.debounce.pend(workloadOf(t, "auto", wholeDB, nil), changeOf(nil)), written.Add(time.Second))
		}, nothing},
		{"the look at what takes too long", nothing, nothing},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := testOptions()
				options.Progress = health.NewProgress(time.Now, time.Minute)
				l := loopOf(t, options)
				l.dirty.begin()
				test.arrange(l)
				l.inFlight.done = func(*events.Delivery, context.Context, error) {}
				var hangs atomic.Bool
				goesOn := make(chan struct{})
				l.now = func() time.Time {
					if hangs.Load() {
						<-goesOn
					}
					return written
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { l.work(ctx) })
				synctest.Wait()
				hangs.Store(true)
				test.begins(l)
				<-time.After(2 * time.Minute)
				if options.Progress.Check() == nil {
					t.Error("it hangs, and the probe does not say so")
				}
				close(goesOn)
				synctest.Wait()
				if err := options.Progress.Check(); err != nil {
					t.Errorf("it waits for work, and the probe says %v", err)
				}
				cancel()
				running.Wait()
			})
		})
	}
}
