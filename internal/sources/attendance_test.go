package sources

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
)

// allPublished returns the time up to which everything is published if nothing waits.
func allPublished(at time.Time) time.Time { return at }

// watchedLog records when attendance was published, and the time that it had.
type watchedLog struct {
	err   error
	said  []time.Duration
	until []time.Duration
	began time.Time
}

func (l *watchedLog) PublishWatched(_ context.Context, _ events.Scope, at time.Time) error {
	l.said, l.until = append(l.said, time.Since(l.began)), append(l.until, at.Sub(l.began))
	return l.err
}

func TestAWatcherSaysUntilWhenItHasWatched(t *testing.T) {
	for _, tt := range []struct {
		name        string
		err         error
		watching    bool
		lost        time.Duration // when the stream loses events
		quiet       time.Duration // when every source is published
		said, until []time.Duration
	}{
		{name: "at once and every hour", watching: true, said: []time.Duration{0, time.Hour}, until: []time.Duration{0, time.Hour}},
		{
			name: "when all that it had noticed is published", watching: true, quiet: time.Minute,
			said: []time.Duration{time.Minute, time.Hour + time.Minute}, until: []time.Duration{0, time.Hour + time.Minute},
		},
		{
			name: "when the stream has lost that", watching: true, lost: 10 * time.Minute,
			said: []time.Duration{0, 10 * time.Minute, 70 * time.Minute}, until: []time.Duration{0, 10 * time.Minute, 70 * time.Minute},
		},
		{name: "not while it may have missed something"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said, lost := &watchedLog{began: time.Now()}, make(chan struct{}, 1)
				quiet := make(chan struct{})
				time.AfterFunc(tt.quiet, func() { close(quiet) })
				if tt.lost > 0 {
					time.AfterFunc(tt.lost, func() { lost <- struct{}{} })
				}
				a := &attendance{
					bus: said, quiet: func() <-chan struct{} { return quiet }, watching: func() bool { return tt.watching },
					publishedUntil: allPublished, now: time.Now, log: slog.New(slog.DiscardHandler),
				}
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
				defer cancel()
				a.run(ctx, lost)
				wantEqual(t, "difference", [][]time.Duration{tt.said, tt.until}, [][]time.Duration{said.said, said.until})
			})
		})
	}
	t.Run("soon after it could not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			said := &watchedLog{began: time.Now(), err: errors.New("no stream")}
			quiet := make(chan struct{})
			close(quiet)
			a := &attendance{
				bus: said, quiet: func() <-chan struct{} { return quiet }, watching: func() bool { return true },
				publishedUntil: allPublished, now: time.Now, log: slog.New(slog.DiscardHandler),
			}
			ctx, cancel := context.WithTimeout(t.Context(), attendRetry+time.Second)
			defer cancel()
			a.run(ctx, nil)
			if len(said.said) != 2 {
				t.Errorf("it tried at %v, want twice", said.said)
			}
		})
	})
}

func TestAnInformerThatFailsMayHaveMissedSomething(t *testing.T) {
	ready := &readiness{}
	if !ready.isWatching(epoch) {
		t.Error("it is said to have failed before it did")
	}
	failures := &watchErrors{readiness: ready, now: func() time.Time { return epoch }, log: slog.New(slog.DiscardHandler)}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
	failures.of("secrets", grantBase, nil)(t.Context(), nil, forbidden)
	if ready.isWatching(epoch.Add(time.Minute)) {
		t.Error("it is said to watch a minute later")
	}
	if !ready.isWatching(epoch.Add(time.Hour)) {
		t.Error("it is said not to watch an hour later")
	}
}

func TestAKindThatIsNotInstalledAnyMoreHasNothingToMiss(t *testing.T) {
	ready := &readiness{}
	failures := &watchErrors{readiness: ready, now: func() time.Time { return epoch }, log: slog.New(slog.DiscardHandler)}
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "external-secrets.io", Resource: "externalsecrets"}, "")
	failures.of("externalsecrets", grantCustom, &installState{})(t.Context(), nil, gone)
	if !ready.isWatching(epoch.Add(time.Minute)) {
		t.Error("it is said not to watch the other kinds")
	}
}

// The next watcher would take an object created before that time for one that was always there, and roll nothing for it.
func TestNothingIsSaidToBePublishedThatWaitsSinceItWasCreated(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		said := &watchedLog{began: time.Now()}
		a := &attendance{
			bus: said, quiet: p.quiet, publishedUntil: p.publishedUntil, watching: func() bool { return true }, now: time.Now,
			log: slog.New(slog.DiscardHandler),
		}
		want := func(when string, until time.Duration) {
			t.Helper()
			must(t, a.note(t.Context()))
			if got := said.until[len(said.until)-1]; got != until {
				t.Errorf("%s: it is said that all until %s is published, want %s", when, got, until)
			}
		}
		<-time.After(time.Hour)
		p.add(otherSource, false)
		p.wait(otherSource, mustTake(t, p, otherSource), 80*time.Hour)
		<-time.After(time.Second)
		want("a change waits", time.Hour+time.Second)
		p.add(testSource, true)
		p.wait(testSource, mustTake(t, p, testSource), 80*time.Hour)
		<-time.After(30 * time.Second)
		want("a creation waits", time.Hour+time.Second)
		p.wait(otherSource, mustTake(t, p, otherSource), 80*time.Hour)
		p.wait(testSource, mustTake(t, p, testSource), 80*time.Hour)
		want("it was looked at", time.Hour+time.Second)
		mustTake(t, p, otherSource)
		p.done(otherSource)
		mustTake(t, p, testSource)
		p.done(testSource)
		want("both are published", time.Since(said.began))
	})
}
