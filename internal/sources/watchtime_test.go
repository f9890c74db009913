package sources

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// watchedLog records when attendance was published, and the time that it had.
type watchedLog struct {
	said  []time.Duration
	until []time.Duration
	began time.Time
}

func (l *watchedLog) PublishWatched(_ context.Context, _ events.Scope, at time.Time) error {
	l.said, l.until = append(l.said, time.Since(l.began)), append(l.until, at.Sub(l.began))
	return nil
}

func TestAWatcherSaysUntilWhenItHasWatched(t *testing.T) {
	for _, tt := range []struct {
		name        string
		failing     bool          // whether an informer fails
		lost        time.Duration // when the stream loses events
		quiet       time.Duration // when every source is published
		said, until []time.Duration
	}{
		{name: "at once and every hour", said: []time.Duration{0, time.Hour}, until: []time.Duration{0, time.Hour}},
		{
			name: "when all that it had noticed is published", quiet: time.Minute,
			said: []time.Duration{time.Minute, time.Hour + time.Minute}, until: []time.Duration{0, time.Hour + time.Minute},
		},
		{
			name: "when the stream has lost that", lost: 10 * time.Minute,
			said: []time.Duration{0, 10 * time.Minute, 70 * time.Minute}, until: []time.Duration{0, 10 * time.Minute, 70 * time.Minute},
		},
		{name: "not while it may have missed something", failing: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			attendanceTest(t, func(t *testing.T, a *attendance, said *watchedLog) {
				lost := make(chan struct{}, 1)
				if tt.quiet > 0 {
					a.pending.add(testSource)
					mustTake(t, a.pending, testSource)
					time.AfterFunc(tt.quiet, func() { a.pending.done(testSource) })
				}
				if tt.lost > 0 {
					time.AfterFunc(tt.lost, func() { lost <- struct{}{} })
				}
				if tt.failing {
					a.readiness.failed.Store(time.Now().Add(24 * time.Hour).UnixNano())
				}
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
				defer cancel()
				a.run(ctx, lost)
				testkit.WantEqual(t, "difference", [][]time.Duration{tt.said, tt.until}, [][]time.Duration{said.said, said.until})
			})
		})
	}
}

// attendanceTest runs a test in a bubble.
func attendanceTest(t *testing.T, test func(t *testing.T, a *attendance, said *watchedLog)) {
	t.Helper()
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		said := &watchedLog{began: time.Now()}
		test(t, &attendance{bus: said, pending: p, readiness: &readiness{}, now: time.Now, log: slog.New(slog.DiscardHandler)}, said)
	})
}

func TestAnInformerThatFailsMayHaveMissedSomething(t *testing.T) {
	ready, resource := &readiness{}, schema.GroupResource{Resource: "secrets"}
	var log testkit.Log
	failures := &watchErrors{readiness: ready, now: func() time.Time { return epoch }, log: slog.New(slog.NewTextHandler(&log, nil))}
	custom, secrets := failures.of("externalsecrets", "rbac.yaml", &installState{}), failures.of("secrets", "rbac.yaml", nil)
	if err := custom(t.Context(), "list", apierrors.NewNotFound(resource, "")); err == nil || !ready.isWatching(epoch) {
		t.Errorf("a kind that is not installed any more is still asked for, or has something to miss: %v", err)
	}
	testkit.Must(t, secrets(t.Context(), "watch", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "sendInitialEvents", nil)))
	if !ready.isWatching(epoch) {
		t.Error("an API server that cannot stream lists has something to miss")
	}
	// A list follows a stream that fails.
	state := &installState{}
	testkit.Must(t, failures.of("externalsecrets", "rbac.yaml", state)(t.Context(), "watch", apierrors.NewTooManyRequests("", 1)))
	if state.troubled.Load() || ready.isWatching(epoch) {
		t.Error("a kind counts as failing before its list has failed, or as watched")
	}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no"))
	testkit.Must(t, secrets(t.Context(), "watch", forbidden)) // A list may be permitted.
	if err := secrets(t.Context(), "list", forbidden); err == nil {
		t.Error("what is forbidden is asked for again at once")
	}
	if times := strings.Count(log.String(), "permission missing"); times != 1 {
		t.Errorf("a missing permission is logged %d times, want once", times)
	}
	if ready.isWatching(epoch.Add(time.Minute)) {
		t.Error("it is said to watch a minute later")
	}
	if !ready.isWatching(epoch.Add(time.Hour)) {
		t.Error("it is said not to watch an hour later")
	}
}

// The next watcher would take an object created before that time for one that was always there, and roll nothing for it.
func TestNothingIsSaidToBePublishedThatWaitsSinceItWasCreated(t *testing.T) {
	attendanceTest(t, func(t *testing.T, a *attendance, said *watchedLog) {
		p := a.pending
		want := func(when string, until time.Duration) {
			t.Helper()
			testkit.Must(t, a.publish(t.Context()))
			if got := said.until[len(said.until)-1]; got != until {
				t.Errorf("%s: it is said that all until %s is published, want %s", when, got, until)
			}
		}
		<-time.After(time.Hour)
		p.add(otherSource)
		p.wait(otherSource, mustTake(t, p, otherSource), 80*time.Hour)
		<-time.After(time.Second)
		want("a change waits", time.Hour+time.Second)
		p.put(testSource, queueEntry{created: true})
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
