package actuate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	annotationPausePeriod = "deployment.reloader.stakater.com/pause-period"
	annotationPausedAt    = "deployment.reloader.stakater.com/paused-at"
)

// pausingCluster returns a cluster with a Deployment that waits for further changes for a period before each roll.
func pausingCluster(t *testing.T, period string) (*cluster, Options) {
	t.Helper()
	c := newCluster(t, deploymentOf("web", "db", map[string]string{workload.AnnotationRollOn: "auto", annotationPausePeriod: period}))
	options := c.options()
	options.Reloader = true
	return c, options
}

// gatheringBoth returns a workload that reads the Secret and the ConfigMap app, was rolled for both, and has a pause.
func gatheringBoth(t *testing.T, pause workload.Pause) (w *workload.Workload, app events.Source) {
	t.Helper()
	app = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	return workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Refs = append(w.Refs, workload.Reference{Kind: app.Kind, Name: app.Name})
		w.Pause = pause
		had := workload.RolledFor{Fingerprint: fp("a"), Version: "90", UID: "uid"}
		w.Rolled = map[string]workload.RolledFor{"secret/db": had, "configmap/app": had}
		w.Progress.Pods = 3
	}), app
}

// content makes an event report other content.
func content(letter string) func(*events.Change) {
	return func(c *events.Change) {
		c.Fingerprint = fp(letter)
		c.Keys["password"] = events.Key{Fingerprint: fp(letter)}
	}
}

// pausedAt returns when the pause of the Deployment began, zero if it has none.
func (c *cluster) pausedAt() time.Time {
	at, _ := time.Parse(time.RFC3339, c.get("web").Annotations[annotationPausedAt])
	return at
}

func TestChangesWithinAPauseMakeOneRollAtItsEnd(t *testing.T) {
	t.Parallel()
	const period = time.Hour
	c, options := pausingCluster(t, period.String())
	var end atomic.Pointer[time.Time] // The clock stands still from the end of the pause on.
	options.Now = func() time.Time {
		if at := end.Load(); at != nil {
			return *at
		}
		return time.Now()
	}
	_, stop := c.start(options)
	seq := c.publish(0, content("1"))
	c.eventually("the first change is held", func() bool { return strings.Contains(c.logged(), "reason=pause-period") })
	c.eventually("the workload says since when", func() bool { return !c.pausedAt().IsZero() })
	begun := c.pausedAt()
	seq = c.publish(seq, content("2"))
	stop()
	// The stream and the workload remember it for the next leader.
	_, stop = c.start(options)
	defer stop()
	c.publish(seq, content("3"))
	taken := fmt.Sprintf("seq=%d dependents=1", c.published)
	c.eventually("the last change is taken", func() bool { return strings.Contains(c.logged(), taken) })
	over := begun.Add(period)
	end.Store(&over)
	c.publish(0, func(change *events.Change) { change.Source.Name = "other" }) // With each event, the loop looks at the clock.
	c.wantPatched("web")
	var started events.Outcome
	c.eventually("its roll is reported", func() bool {
		stored, err := c.bus.Last(c.Context(), events.OutcomeSubject("demo", events.Workload{Kind: "deployment", Namespace: "shop", Name: "web"}))
		if err == nil {
			started, err = stored.Outcome()
		}
		return err == nil && started.Verb == events.VerbStarted
	})
	if early := over.Sub(started.StartedAt); early > 0 {
		t.Errorf("it is rolled %s before the end of the pause", early)
	}
	if !c.pausedAt().Equal(begun) {
		t.Errorf("the workload says that the pause began at %s, want still %s", c.pausedAt(), begun)
	}
	c.wantLast("web", "started content-changed")
	c.wantPatched("web")
	if c.get("web").Spec.Paused {
		t.Error("spec.paused is set")
	}
}

func TestContentThatComesBackWithinAPauseRollsNothing(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Pause = workload.Pause{Period: time.Minute, Begun: written}
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "90", UID: "uid"}}
		w.Progress.Pods = 3
	})
	now, options := written, testOptions()
	options.Now = func() time.Time { return now }
	l := loopOf(t, options, w)
	consider := func(version, letter string) *inFlightEvent {
		e := eventOf(changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = version, version, fp(letter) }))
		e.delivery.Received, e.open = now, 1 // so that it is not finished: no message came with it
		l.intake.consider(t.Context(), e, w, nil)
		return e
	}
	consider("100", "b")
	now = now.Add(options.SettleMax)
	l.dispatcher.dispatch(t.Context())
	if p := l.debounce.byKey[w.Key()]; p == nil || p.held != plan.Pausing || !p.due.Equal(written.Add(time.Minute)) {
		t.Fatalf("it does not wait for the end of the pause: %+v", p)
	}
	consider("110", "a")
	now = written.Add(time.Minute)
	l.dispatcher.dispatch(t.Context())
	if l.debounce.byKey[w.Key()] != nil || !l.patcher.idle() {
		t.Error("it is not left alone at the end of the pause")
	}
}

func TestAPauseThatSomeoneElseHasBegunIsLeftToThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
		deployments := []*appsv1.Deployment{
			deploymentOf("left", "db", map[string]string{annotationPausePeriod: "1s", annotationPausedAt: over}),
			deploymentOf("paused", "db", map[string]string{annotationPausePeriod: "1s", annotationPausedAt: over}),
		}
		deployments[1].Spec.Paused = true
		c := newStreamless(t, deployments...)
		options := c.options()
		options.Reloader = true
		c.lead(options)
		c.eventually("what was left behind is taken away", func() bool { return c.get("left").Annotations[annotationPausedAt] == "" })
		if got := c.get("paused"); got.Annotations[annotationPausedAt] == "" || !got.Spec.Paused {
			t.Errorf("the Deployment that is paused was changed: %v, paused %t", got.Annotations, got.Spec.Paused)
		}
		if got := c.patches(); len(got) > 0 {
			t.Errorf("%s were rolled", got)
		}
	})
}

// Reloader keeps the end of a pause only in memory. If it stops before the end, the Deployment stays paused.
func TestADeploymentThatIsStillPausedAfterItsPauseIsReportedOnce(t *testing.T) {
	const period = time.Minute
	paused := func(w *workload.Workload) {
		w.Pause, w.Progress.State = workload.Pause{Period: period, Begun: written}, workload.Waiting
	}
	resumed := func(w *workload.Workload) { w.Version, w.Pause = "51", workload.Pause{Period: period} }
	for _, tt := range []struct {
		name  string
		later func(*workload.Workload)
		want  []string
	}{
		{"it is", nil, []string{"StillPaused"}},
		{"it was resumed in time", resumed, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, options := written, testOptions()
			options.Now = func() time.Time { return now }
			w := workloadOf(t, "auto", wholeDB, paused)
			l := loopOf(t, options, w)
			reported := func() (reasons []string) {
				for event := l.concluder.reporter.kube.waiting(); event != nil; event = l.concluder.reporter.kube.waiting() {
					reasons = append(reasons, event.Reason)
				}
				return reasons
			}
			l.pauses.review(w.Key())
			now = written.Add(period + pauseLeft - time.Second)
			l.pauses.advance(t.Context())
			if got := reported(); got != nil {
				t.Errorf("Reloader may still resume it, and reported is %s", got)
			}
			if tt.later != nil {
				l.dispatcher.index.Written(workloadOf(t, "auto", wholeDB, tt.later))
				l.pauses.review(w.Key())
			}
			now = written.Add(period + pauseLeft)
			for range 2 {
				l.pauses.advance(t.Context())
				l.pauses.review(w.Key())
			}
			if diff := cmp.Diff(tt.want, reported()); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPauseIsNoneWithoutReloader(t *testing.T) {
	c, options := pausingCluster(t, "1h")
	options.Reloader = false
	_, stop := c.start(options)
	defer stop()
	seq := c.publish(0, content("1"))
	c.wantLast("web", "started content-changed")
	c.publish(seq, content("2"))
	c.eventually("it is rolled again", func() bool { return len(c.patches()) == 2 })
	if !c.pausedAt().IsZero() {
		t.Error("it is marked as paused")
	}
}

func TestARollThatIsRepeatedWaitsForNoOtherPause(t *testing.T) {
	tests := []struct {
		name string
		lose func(*revertBed)
	}{
		{"admission took it out of the patch", func(b *revertBed) {
			b.strips = true
			b.change()
			b.strips = false
		}},
		{"an operator took it back", func(b *revertBed) {
			b.change()
			b.revert()
			b.act()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newReadBed(t, workload.Reading{Reloader: true}, map[string]string{
				workload.AnnotationRollOn: "auto", annotationPausePeriod: "1m",
			})
			test.lose(b)
			b.outcomes()
			b.change()
			if got := b.outcomes(); len(got) != 1 || got[0].Verb != events.VerbStarted {
				t.Errorf("got %+v, want that it is rolled without a wait", got)
			}
		})
	}
}

// A period begins with the first change that is to roll the workload. The actuator tries once a minute to write that on the workload.
func TestAPauseBeginsWithTheFirstChangeThatRolls(t *testing.T) {
	w, app := gatheringBoth(t, workload.Pause{Period: 5 * time.Minute})
	now, options := written, testOptions()
	options.Now = func() time.Time { return now }
	l := loopOf(t, options, w)
	consider := func(change events.Change) {
		change.Time = now
		e := eventOf(change)
		e.delivery.Received, e.open = now, 1 // open, so that it is not finished: no message came with it
		l.intake.consider(t.Context(), e, w, nil)
	}
	onHold := version(100, "b")
	onHold.Hold = "rotation"
	consider(onHold)
	now = now.Add(time.Hour)
	change := version(101, "c")
	change.Source = app
	consider(change)
	begun := now
	for asked, minutes := range []int{0, 0, 1, 1} {
		now = begun.Add(time.Duration(minutes)*time.Minute + options.SettleMax)
		l.dispatcher.act(t.Context(), l.debounce.byKey[w.Key()], w)
		if p := l.debounce.byKey[w.Key()]; p == nil || p.held != plan.Pausing || !p.due.Equal(begun.Add(5*time.Minute)) {
			t.Fatalf("it does not wait for the end of the period: %+v", p)
		}
		if busy := l.patcher.busy(w.Key()); busy != (asked%2 == 0) {
			t.Errorf("after %d minutes, at look %d: it is asked to say that the pause has begun: %t", minutes, asked, busy)
		}
		if l.patcher.busy(w.Key()) {
			// The patch fails, so the workload does not show the pause.
			l.patcher.finished((<-l.patcher.results).task)
		}
	}
}

func TestAPauseThatIsWrittenNowhereEndsNevertheless(t *testing.T) {
	t.Parallel()
	c, options := pausingCluster(t, "2s")
	_, stop := c.start(options)
	defer stop()
	c.mu.Lock()
	c.refuse = errors.New("no answer")
	c.mu.Unlock()
	c.publish(0, content("1"))
	c.eventually("its beginning cannot be written", func() bool { return strings.Contains(c.logged(), "beginning or the end of a pause failed") })
	c.mu.Lock()
	c.refuse = nil
	c.mu.Unlock()
	c.wantLast("web", "started content-changed")
}

func TestAfterAPauseAWaitCountsAgain(t *testing.T) {
	tests := []struct {
		name string
		// back is when the content comes back, and decided when that is decided, both counted from the end of the pause.
		back, decided time.Duration
		want          plan.Action
	}{
		{"it came back within the pause", -time.Second, 0, plan.Skip},
		{"it came back within the pause, and another workload held up the decision", -time.Second, time.Minute, plan.Skip},
		{"it came back while another workload held it up", time.Minute, time.Minute, plan.Roll},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, app := gatheringBoth(t, workload.Pause{Period: time.Minute, Begun: written})
			now, options := written, testOptions()
			options.Now = func() time.Time { return now }
			l := loopOf(t, options, w)
			l.inFlight.done = func(*events.Delivery, context.Context, error) {}
			seq := uint64(0)
			take := func(at time.Duration, source events.Source, number int, letter string) {
				now = written.Add(at)
				change := version(number, letter)
				change.Source = source
				seq++
				l.intake.take(t.Context(), &events.Delivery{Change: change, Seq: seq, Deliveries: 1, Received: now})
			}
			take(0, db, 100, "b")
			now = now.Add(options.SettleMax)
			l.dispatcher.dispatch(t.Context())
			// The second source joins the pause that has begun.
			take(20*time.Second, app, 101, "b")
			take(time.Minute+test.back, db, 110, "a")
			take(time.Minute+test.back, app, 111, "a")
			now = written.Add(time.Minute + test.decided)
			v := l.dispatcher.decide(l.debounce.byKey[w.Key()], w)
			for _, decision := range append(v.doing, v.leaving...) {
				if decision.Reason.Action() != test.want {
					t.Errorf("%s: got %s", decision.Source, decision.Reason)
				}
			}
		})
	}
}
