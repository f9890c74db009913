package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// workFunc is the work on a source.
type workFunc func(context.Context, events.Source, *queueEntry) error

func (f workFunc) reconcile(ctx context.Context, source events.Source, entry *queueEntry) error {
	return f(ctx, source, entry)
}

func workerOf(t *testing.T, work workFunc) (*worker, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	return &worker{
		pending: newPendingSources(time.Now), metrics: unmeasured(t, newLedger()), log: slog.New(slog.NewJSONHandler(log, nil)), reconciler: work,
		inFlight: bus.NewInFlight(1, time.Now),
	}, log
}

// start runs the worker until stop is called.
func (w *worker) start(ctx context.Context) (stop func()) {
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	return func() { w.pending.shutDown(); running.Wait() }
}

func TestAWorkerTriesAgainAndFinishesWhatItHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tries := make(chan queueEntry, 2)
		one, log := workerOf(t, func(ctx context.Context, _ events.Source, entry *queueEntry) error {
			if ctx.Err() != nil {
				t.Error("the work is cut off")
			}
			if tries <- *entry; len(tries) == 1 {
				return errors.New("no answer")
			}
			cancel()
			return ctx.Err()
		})
		stop := one.start(ctx)
		one.pending.put(testSource, queueEntry{created: true})
		<-one.pending.quiet()
		if len(tries) != 1 || !strings.Contains(log.String(), "cannot publish an event; retrying") {
			t.Errorf("%d tries; the log is:\n%s", len(tries), log)
		}
		<-ctx.Done()
		<-one.pending.quiet()
		if first, second := <-tries, <-tries; !first.at.Equal(second.at) || !first.created || !second.created {
			t.Errorf("tried with %+v and %+v, want the same entry twice", first, second)
		}
		stop()
	})
}

func TestAWorkerPublishesWhatIsQueuedAtTheEndUnlessNATSDoesNotAnswer(t *testing.T) {
	for want, err := range map[int]error{100: nil, 1: errors.New("no answer")} {
		tries := 0
		one, _ := workerOf(t, func(context.Context, events.Source, *queueEntry) error { tries++; return err })
		for i := range 100 {
			one.pending.add(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: fmt.Sprintf("s%d", i)})
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		one.pending.shutDown()
		one.run(ctx)
		if tries != want {
			t.Errorf("tried %d sources after the end, want %d", tries, want)
		}
	}
}

func TestASourceThatCannotBePublishedIsLoggedOnceAndKeepsNoOtherFromIt(t *testing.T) {
	tooLarge, full := fmt.Errorf("%w: it has 70000 bytes", bus.ErrTooLarge), errors.New("maximum bytes exceeded")
	for _, tt := range []struct {
		name string
		// errs has one for each quarter of an hour. Then the source is published.
		errs        []error
		least, most int // attempts
		lines       int
	}{
		{"an event that the server does not take is tried once a minute", []error{tooLarge, tooLarge}, 30, 40, 1},
		{"one for which the stream has no room is tried sooner", []error{full, full}, 400, 800, 1},
		{"another reason is logged, too", []error{full, tooLarge}, 200, 400, 2},
		{"and so is the same one after a success", []error{full, nil, full}, 400, 800, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const quarter = 15 * time.Minute
				var mu sync.Mutex
				tries, began := map[events.Source]int{}, time.Now()
				tried := func(source events.Source) int {
					mu.Lock()
					defer mu.Unlock()
					return tries[source]
				}
				one, log := workerOf(t, func(_ context.Context, source events.Source, _ *queueEntry) error {
					mu.Lock()
					tries[source]++
					mu.Unlock()
					if now := int(time.Since(began) / quarter); source == testSource && now < len(tt.errs) {
						return tt.errs[now]
					}
					return nil
				})
				stop := one.start(t.Context())
				for i := range tt.errs {
					one.pending.put(testSource, queueEntry{created: true})
					one.pending.add(otherSource)
					synctest.Wait()
					if n := tried(otherSource); n != i+1 {
						t.Errorf("the other source was tried %d times, want %d", n, i+1)
					}
					<-time.After(quarter)
				}
				<-time.After(2 * time.Minute)
				if n := tried(testSource); n < tt.least || n > tt.most {
					t.Errorf("tried %d times, want %d to %d", n, tt.least, tt.most)
				}
				if n := strings.Count(log.String(), "cannot publish an event; retrying"); n != tt.lines {
					t.Errorf("the log has %d lines, want %d:\n%s", n, tt.lines, log)
				}
				stop()
			})
		})
	}
}

// slowStream answers after a time.
type slowStream struct {
	answer time.Duration

	mu        sync.Mutex
	now, most int
}

func (s *slowStream) PublishChange(context.Context, events.Change, uint64) (uint64, error) {
	s.add(1)
	defer s.add(-1)
	<-time.After(s.answer)
	return 1, nil
}

func (s *slowStream) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += n
	s.most = max(s.most, s.now)
}

// If a source were taken before its turn, its attempt would end while it waits for those of the others.
func TestWorkersTakeFewerSourcesWhileAnswersAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 8
		stream := &slowStream{answer: time.Millisecond}
		inFlight := bus.NewInFlight(workers, time.Now)
		p := &publisher{bus: stream, inFlight: inFlight, ledger: newLedger(), metrics: unmeasured(t, newLedger()), now: time.Now}
		one, _ := workerOf(t, func(ctx context.Context, source events.Source, _ *queueEntry) error {
			return p.publish(ctx, events.Change{Source: source, Verb: events.VerbObserved, Fingerprint: fingerprint}, 0, time.Now())
		})
		one.inFlight = inFlight
		var running sync.WaitGroup
		for range workers {
			running.Go(func() { one.run(t.Context()) })
		}
		inFlightOf := func(answer time.Duration) int {
			stream.answer, stream.most = answer, 0
			for i := range 100 {
				one.pending.add(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: fmt.Sprintf("s%d", i)})
			}
			<-one.pending.quiet()
			synctest.Wait()
			return stream.most
		}
		if got := inFlightOf(time.Millisecond); got != workers {
			t.Errorf("%d are in flight while answers are prompt, want %d", got, workers)
		}
		inFlightOf(time.Second)
		if got := inFlightOf(time.Second); got != 1 {
			t.Errorf("%d are in flight while answers are late, want one", got)
		}
		inFlightOf(time.Millisecond)
		if got := inFlightOf(time.Millisecond); got != workers {
			t.Errorf("%d are in flight when answers are prompt again, want %d", got, workers)
		}
		one.pending.shutDown()
		running.Wait()
	})
}

func TestAWorkerDropsWhatCanNeverBePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := map[events.Source]int{}
		one, log := workerOf(t, func(_ context.Context, source events.Source, _ *queueEntry) error {
			if tries[source]++; source == testSource {
				return errRefused
			}
			return nil
		})
		stop := one.start(t.Context())
		one.pending.put(testSource, queueEntry{created: true})
		one.pending.add(otherSource)
		<-time.After(time.Hour)
		if text := log.String(); tries[testSource] != 1 || tries[otherSource] != 1 || strings.Count(text, "an event is not valid; dropping it") != 1 {
			t.Errorf("tried %v; the log is:\n%s", tries, text)
		}
		one.pending.add(testSource)
		synctest.Wait()
		if tries[testSource] != 2 {
			t.Errorf("tried %v, want once more after the change", tries)
		}
		stop()
	})
}
