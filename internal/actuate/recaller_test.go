package actuate

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// runRecaller runs a recaller. The returned function stops it and waits for its end.
func runRecaller(t *testing.T, r *recaller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		r.run(ctx)
		close(ended)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func TestARecalledEventIsReadUntilItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
		gone := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "gone"}
		web := workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}
		tries := 0
		r := newRecaller(func(_ context.Context, source events.Source) (*events.Delivery, error) {
			if source == gone {
				return nil, events.ErrNotFound
			}
			if tries++; tries < 3 {
				return nil, errors.New("no answer")
			}
			return &events.Delivery{Change: events.Change{Source: source}}, nil
		}, slog.New(slog.DiscardHandler), time.Now)
		// A question that is being answered may be asked again, so all are asked first.
		for range 2 {
			r.ask(question{workload: web, source: gone})
			r.ask(question{workload: web, source: db})
		}
		stop := runRecaller(t, r)
		got := <-r.answers
		if got.workload != web || got.delivery.Change.Source != db || tries != 3 {
			t.Errorf("got %v after %d tries, want the event of %v after 3", got, tries, db)
		}
		// Done has no effect on an event that no consumer waits for.
		got.delivery.Done(t.Context(), context.Canceled)
		stop()
	})
}

func TestARecalledEventIsDecidedForItsWorkloadOnly(t *testing.T) {
	web := workloadOf(t, "auto", wholeDB, nil)
	l := loopOf(t, testOptions(), web)
	delivery := &events.Delivery{Change: changeOf(nil), Deliveries: 1}
	l.intake.recall(t.Context(), answer{question{workload: web.Key(), source: delivery.Change.Source}, delivery})
	if l.debounce.byKey[web.Key()] == nil || len(l.debounce.byKey) != 1 {
		t.Errorf("%d workloads are pending, want web", len(l.debounce.byKey))
	}
	unknown := workload.Key{Kind: "deployment", Namespace: "shop", Name: "gone"}
	l.intake.recall(t.Context(), answer{question{workload: unknown, source: delivery.Change.Source}, delivery})
	if len(l.debounce.byKey) != 1 {
		t.Errorf("%d workloads are pending, want 1: the other does not exist", len(l.debounce.byKey))
	}
}

// The recalled event was read before the later one was published.
func TestARecalledEventReplacesNoLaterOne(t *testing.T) {
	later := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = "110", "110", fp("c") })
	tests := []struct {
		name    string
		prepare func(*loop, *workload.Workload)
		after   func(*loop, *workload.Workload)
	}{
		{"one that is pending", func(l *loop, w *workload.Workload) {
			l.debounce.pend(w, later).changes[db].event.delivery = storedAt(2, later)
		}, func(*loop, *workload.Workload) {}},
		{
			"one whose patch is under way, and fails",
			func(l *loop, w *workload.Workload) {
				p := pendingOf(w, later)
				p.changes[db].event.delivery = storedAt(2, later)
				l.patcher.underWay[w.Key()] = &task{workload: w, pending: p}
			},
			func(l *loop, w *workload.Workload) { l.debounce.retry(l.patcher.underWay[w.Key()].pending, written) },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			web := workloadOf(t, "auto", wholeDB, nil)
			l := loopOf(t, testOptions(), web)
			test.prepare(l, web)
			l.intake.recall(t.Context(), answer{question{workload: web.Key(), source: db}, storedAt(1, changeOf(nil))})
			test.after(l, web)
			if c := l.debounce.byKey[web.Key()].changes[db]; c.change.ResourceVersion != "110" {
				t.Errorf("the change at %s is pending, want that at 110", c.change.ResourceVersion)
			}
		})
	}
}

func TestAQuestionCanWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}
		r := newRecaller(func(_ context.Context, source events.Source) (*events.Delivery, error) {
			return &events.Delivery{Change: events.Change{Source: source}}, nil
		}, slog.New(slog.DiscardHandler), time.Now)
		stop := runRecaller(t, r)
		began := time.Now()
		r.askAfter(question{workload: web, source: db}, time.Minute)
		r.askAfter(question{workload: web, source: db}, time.Hour)
		r.ask(question{workload: web, source: app})
		for _, want := range []struct {
			events.Source
			after time.Duration
		}{{app, 0}, {db, time.Minute}} {
			if got := <-r.answers; got.source != want.Source || time.Since(began) != want.after {
				t.Errorf("got the event of %v after %s, want that of %v after %s", got.source, time.Since(began), want.Source, want.after)
			}
		}
		stop()
	})
}

// A replica of the stream may answer with an event that was just superseded.
func TestWhatANewReferenceAsksForIsAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}
		version := 0
		r := newRecaller(func(_ context.Context, source events.Source) (*events.Delivery, error) {
			if version++; version == 1 {
				return nil, events.ErrNotFound
			}
			return &events.Delivery{Change: events.Change{Source: source, ResourceVersion: strconv.Itoa(version)}}, nil
		}, slog.New(slog.DiscardHandler), time.Now)
		stop := runRecaller(t, r)
		began := time.Now()
		r.ask(question{workload: web, source: db, why: recallLinked})
		select {
		case got := <-r.answers:
			if got.delivery.Change.ResourceVersion != "2" || time.Since(began) != recallAgain {
				t.Errorf("got version %s after %s, want the second one after %s", got.delivery.Change.ResourceVersion, time.Since(began), recallAgain)
			}
		case <-time.After(time.Hour):
			t.Error("it is not asked again")
		}
		<-time.After(time.Hour)
		if version != 2 {
			t.Errorf("it was asked %d times, want twice", version)
		}
		stop()
	})
}

// What is decided twice is reported twice if nothing on the workload shows the first decision, as in a dry run.
func TestTheSecondQuestionIsAnsweredOnlyWithAnotherEvent(t *testing.T) {
	for _, tt := range []struct {
		name     string
		versions []string
		want     int
	}{
		{"the same event", []string{"1", "1"}, 1},
		{"a later event", []string{"1", "2"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads := 0
				r := newRecaller(func(_ context.Context, source events.Source) (*events.Delivery, error) {
					reads++
					return &events.Delivery{Change: events.Change{Source: source, UID: "uid", ResourceVersion: tt.versions[reads-1]}}, nil
				}, slog.New(slog.DiscardHandler), time.Now)
				stop := runRecaller(t, r)
				r.ask(question{workload: workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}, source: db, why: recallLinked})
				answers := 0
				for later := time.After(time.Hour); later != nil; {
					select {
					case <-r.answers:
						answers++
					case <-later:
						later = nil
					}
				}
				stop()
				if answers != tt.want || reads != 2 {
					t.Errorf("%d answers of %d reads, want %d of 2", answers, reads, tt.want)
				}
			})
		})
	}
}
