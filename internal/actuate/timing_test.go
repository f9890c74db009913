package actuate

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/window"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// annotated sets annotations of a Deployment. An empty value removes one.
func (c *cluster) annotated(name string, annotations map[string]string) {
	c.Helper()
	c.set(name, func(d *appsv1.Deployment) {
		for key, value := range annotations {
			d.Annotations[key] = value
			if value == "" {
				delete(d.Annotations, key)
			}
		}
	})
}

// isHeld waits until a Deployment is held for a reason, with a text.
func (c *cluster) isHeld(name string, why plan.Reason, text string) {
	c.Helper()
	c.wantTold(name, "held "+why.String()+": "+text)
}

// wantTold waits until an outcome of a Deployment has a text.
func (c *cluster) wantTold(name, text string) {
	c.Helper()
	testkit.Await(c.T, name+" is told of: "+text, func(ctx context.Context) bool {
		var told strings.Builder
		query := events.HistoryQuery{Clusters: []string{"demo"}, Kind: events.KindRollout, Namespace: "shop", Name: "deployment-" + name}
		err := c.bus.History(ctx, query, func(stored events.Stored) error {
			if outcome, err := stored.Outcome(); err == nil {
				told.WriteString(string(outcome.Verb) + " " + outcome.Reason + ": " + outcome.Message + "\n")
			}
			return nil
		})
		return err == nil && strings.Contains(told.String(), text)
	}, c.logged)
}

func (c *cluster) wantPatched(names ...string) {
	c.Helper()
	c.eventually("rolled: "+strings.Join(names, ", "), func() bool { return len(c.patches()) >= len(names) })
	if diff := cmp.Diff(names, c.patches()); diff != "" {
		c.Errorf("rolled (-want +got):\n%s", diff)
	}
}

func TestAWorkloadOnHoldRollsOnceForWhatIsPendingWhenTheHoldIsTakenOff(t *testing.T) {
	t.Parallel()
	hold := map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu\napply"}
	c := newCluster(t, deploymentOf("held", "db", hold), deploymentOf("other", "db", rollOn("auto")))
	_, stop := c.start(c.options())
	seq := c.publish(0, content("1"))
	c.isHeld("held", plan.OnHold, "somebody has put the workload on hold: tofu apply")
	c.wantPatched("other")
	stop()
	// The stream and the workload remember it for the next leader.
	_, stop = c.start(c.options())
	defer stop()
	c.eventually("it is held again", func() bool { return strings.Count(c.logged(), "reason=on-hold") == 2 })
	c.publish(seq, content("2"))
	c.wantPatched("other", "other")
	c.annotated("held", map[string]string{events.AnnotationHold: ""})
	c.wantPatched("other", "other", "held")
	c.eventually("nothing is left in flight", func() bool {
		lag, err := c.bus.Lag(c.Context(), "actuator-demo")
		return err == nil && lag.AckPending == 0 && lag.Pending == 0
	})
	c.wantPatched("other", "other", "held")
	if got := recordOf(c.get("held").Annotations[annotationRolled])["secret/db"].Fingerprint; got != fp("2") {
		t.Errorf("it is rolled for %s, want the last content", got)
	}
}

func TestWhyAWorkloadRestsIsToldAgainOnlyForAnotherChange(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { w.Hold = "tofu apply" })
	for deliveries, want := range map[int]int{1: 1, 2: 0} {
		l := loopOf(t, testOptions(), w)
		p := l.debounce.pend(w, changeOf(nil))
		p.changes[db].event.delivery.Deliveries = deliveries
		l.debounce.release(p, written)
		l.dispatcher.dispatch(t.Context())
		if got := len(l.outbox.waiting); got != want || p.held != plan.OnHold {
			t.Errorf("delivered %d times it is told of %d times, want %d; held: %s", deliveries, got, want, p.held)
		}
	}
}

func TestASourceOnHoldRollsNothingUntilTheHoldIsTakenOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deploymentOf("web", "db", rollOn("auto")), deploymentOf("now", "db", map[string]string{
		workload.AnnotationRollOn: "auto", workload.AnnotationRollNow: "1",
	}))
	_, stop := c.start(c.options())
	defer stop()
	held := func(letter string) func(*events.Change) {
		return func(change *events.Change) {
			content(letter)(change)
			change.Hold = "migration"
		}
	}
	seq := c.publish(0, held("1"))
	c.isHeld("web", plan.SourceOnHold, "somebody has put the source on hold: secret/db: migration")
	c.wantPatched("now") // Somebody has asked for it.
	seq = c.publish(seq, held("2"))
	c.isHeld("now", plan.SourceOnHold, "")
	c.wantPatched("now")
	c.publish(seq, content("2"))
	c.eventually("both are rolled", func() bool { return len(c.patches()) == 3 })
	for _, name := range []string{"web", "now"} {
		if got := recordOf(c.get(name).Annotations[annotationRolled])["secret/db"].Fingerprint; got != fp("2") {
			t.Errorf("%s is rolled for %s, want the last content", name, got)
		}
	}
}

// holding starts an actuator in whose cluster the change with the returned sequence waits for the workload web, which is on hold.
func holding(t *testing.T) (c *cluster, seq uint64, stop func()) {
	t.Helper()
	c = newCluster(t, deploymentOf("web", "db", map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply"}))
	_, stop = c.start(c.options())
	seq = c.publish(0, content("1"))
	c.isHeld("web", plan.OnHold, "")
	return c, seq, stop
}

func TestAChangeThatWaitsIsForgottenWhenItsSourceIsIgnored(t *testing.T) {
	t.Parallel()
	c, seq, stop := holding(t)
	defer stop()
	seq = c.publish(seq, func(change *events.Change) {
		content("1")(change)
		change.Verb, change.Ignore = events.VerbObserved, true
	})
	c.decided() // The workload is still on hold.
	c.annotated("web", map[string]string{events.AnnotationHold: ""})
	c.publish(seq, content("2"))
	c.wantPatched("web")
	if got := recordOf(c.get("web").Annotations[annotationRolled])["secret/db"].Fingerprint; got != fp("2") {
		t.Errorf("it is rolled for %s, want the content after", got)
	}
}

func TestAskedToRollNowAWorkloadOnHoldRollsOnceForEachValue(t *testing.T) {
	t.Parallel()
	c, seq, stop := holding(t)
	defer stop()
	c.annotated("web", map[string]string{workload.AnnotationRollNow: "1"}) // after the change
	c.wantPatched("web")
	if got := c.get("web").Annotations["keyturn.dev/rolled-now"]; got != "1" {
		t.Errorf("what is recorded of it is %q", got)
	}
	c.wantLast("web", "started content-changed")
	seq = c.publish(seq, content("2"))
	c.eventually("the next change is held again", func() bool { return strings.Count(c.logged(), "reason=on-hold") == 2 })
	c.annotated("web", map[string]string{workload.AnnotationRollNow: "2"})
	c.wantPatched("web", "web")
	c.annotated("web", map[string]string{workload.AnnotationRollNow: "3"}) // before the change, which rolls nothing
	c.publish(seq, content("3"))
	c.wantPatched("web", "web", "web")
}

func TestARollForOneSourceTakesThePendingChangeOfOneOnHoldAlong(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Refs = append(w.Refs, workload.Reference{Kind: events.KindConfigMap, Name: "app"})
	})
	held := changeOf(func(c *events.Change) { c.Hold = "migration" })
	p := pendingOf(w, held)
	l := loopOf(t, testOptions(), w)
	if v := l.dispatcher.decide(p, w); v.rolls || v.waits.reason != plan.SourceOnHold || v.waits.said != "secret/db: migration" {
		t.Fatalf("alone: %+v", v)
	}
	other := changeOf(func(c *events.Change) { c.Source = app })
	p.changes[app] = &pendingChange{change: other, event: eventOf(other)}
	v := l.dispatcher.decide(p, w)
	got := map[string]plan.Reason{}
	for _, decision := range v.doing {
		got[decision.Source.String()] = decision.Reason
	}
	want := map[string]plan.Reason{"configmap/app": plan.Changed, "secret/db": plan.PodsNewer}
	if diff := cmp.Diff(want, got); diff != "" || !v.rolls || v.waits.reason != plan.None {
		t.Errorf("with another: %+v (-want +got):\n%s", v, diff)
	}
}

func TestWhatRestsIsLookedAtWhenItChangesAndNotWhenOthersDo(t *testing.T) {
	d := newDebounce(time.Second, time.Minute)
	for _, why := range []plan.Reason{plan.OnHold, plan.SourceOnHold, plan.WindowClosed, plan.RolledRecently, plan.RolledTooOften, plan.Pausing} {
		w := workloadOf(t, "auto", wholeDB, named(why.String(), nil))
		d.add(w, eventOf(changeOf(nil)), nil, written)
		p := d.pop(written.Add(time.Second), inAny)
		d.hold(p, why)
		d.releaseHeld(workload.Key{Kind: "deployment", Namespace: "shop", Name: "other"}, written)
		d.releaseAll(written)
		if p.held != why {
			t.Errorf("%s: others have released it", why)
		}
		d.wake(w.Key(), written)
		if got := d.pop(written, inAny); got != p || got.isHeld() {
			t.Errorf("%s: it is not due when it has changed", why)
		}
		d.drop(p)
	}
	if d.countHeld() > 0 {
		t.Errorf("left behind: %v", d.holds.by)
	}
}

// windowsOf returns the windows in a text.
func windowsOf(text string) window.Windows {
	windows, err := window.Parse(text)
	if err != nil {
		panic(err)
	}
	return windows
}

// finishPatches waits for the patches under way.
func finishPatches(l *loop) {
	for range l.patcher.drain() {
		continue // Their results do not matter.
	}
}

// TestAWorkloadWaitsForItsWindow advances the clock over a night in which Berlin skips an hour.
func TestAWorkloadWaitsForItsWindow(t *testing.T) {
	const nightly = "30 2 * * * for 1h Europe/Berlin"
	noon := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	opening := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	tests := []struct {
		name        string
		flag        string
		annotations map[string]string
		want        time.Time // when it is rolled; noon at once, zero never
		said        string
	}{
		{name: "at any time without one", want: noon},
		{name: "of its annotation", annotations: map[string]string{workload.AnnotationWindow: nightly}, want: opening},
		{name: "of the flag", flag: nightly, want: opening},
		{name: "of the annotation rather than of the flag", flag: nightly, annotations: map[string]string{workload.AnnotationWindow: "always"}, want: noon},
		{name: "an empty annotation is none", flag: nightly, annotations: map[string]string{workload.AnnotationWindow: " "}, want: opening},
		{name: "one that is open", annotations: map[string]string{workload.AnnotationWindow: "0 11 * * * for 2h"}, want: noon},
		{
			name: "unless somebody asks", want: noon,
			annotations: map[string]string{workload.AnnotationWindow: nightly, workload.AnnotationRollNow: "1"},
		},
		{
			name: "for ever with a typo", said: "keyturn.dev/window is not valid",
			annotations: map[string]string{workload.AnnotationWindow: "30 2 * * * Europe/Berlin for 1h"},
		},
		{
			name: "for ever with a typo, whatever the flag says", flag: "* * * * * for 1h", said: "keyturn.dev/window is not valid",
			annotations: map[string]string{workload.AnnotationWindow: "nightly"},
		},
		{
			name: "but not with a typo if somebody asks", want: noon,
			annotations: map[string]string{workload.AnnotationWindow: "nightly", workload.AnnotationRollNow: "1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now, options := noon, testOptions()
			options.Now, options.Window = func() time.Time { return now }, tt.flag
			a, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			annotations := map[string]string{workload.AnnotationRollOn: "auto"}
			maps.Copy(annotations, tt.annotations)
			w, _ := a.index.Read(deployments, webDeployment("50", annotations))
			a.index.Listed(w, "")
			l := newLoop(a.surroundings, unwritten(a))
			defer finishPatches(l)
			p := l.debounce.pend(w, changeOf(nil))
			step := func() *pending {
				l.dispatcher.dispatch(t.Context())
				return l.debounce.byKey[w.Key()]
			}
			l.debounce.release(p, now)
			p = step()
			if tt.want.Equal(noon) {
				if p != nil {
					t.Errorf("it waits: %s until %s", p.held, p.due)
				}
				return
			}
			if p == nil || p.held != plan.WindowClosed {
				t.Fatalf("it does not wait for a window: %+v", p)
			}
			told := l.outbox.waiting[len(l.outbox.waiting)-1].outcome
			if tt.want.IsZero() {
				if p.position >= 0 || !strings.Contains(told.Message, tt.said) {
					t.Errorf("it is due at %s, and told of: %s", p.due, told.Message)
				}
				return
			}
			if until := p.due; until.Before(tt.want) || until.After(tt.want.Add(3*time.Minute)) || !strings.Contains(told.Message, until.Format(time.RFC3339)) {
				t.Errorf("it waits until %s, want %s and a moment; told of: %s", until, tt.want, told.Message)
			}
			now = p.due.Add(-time.Second)
			if step() == nil {
				t.Error("it is rolled a second early")
			}
			now = p.due
			if p := step(); p != nil {
				t.Errorf("it still waits: %s", p.held)
			}
		})
	}
}

func TestAWorkloadThatGetsNoSlotWhileItsWindowIsOpenWaitsForTheNext(t *testing.T) {
	now, options := time.Date(2026, 3, 28, 1, 30, 0, 0, time.UTC), testOptions()
	options.Now, options.Window, options.MaxRollouts = func() time.Time { return now }, "0 1 * * * for 1h", 1
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := a.index.Read(deployments, webDeployment("50", rollOn("auto")))
	w.Progress.Pods = 1
	a.index.Listed(w, "")
	l := newLoop(a.surroundings, unwritten(a))
	other := workload.Key{Kind: "deployment", Namespace: "bank", Name: "other"}
	a.index.Listed(workloadOf(t, "auto", wholeDB, named("other", func(w *workload.Workload) { w.ID.Namespace, w.Progress.Pods = "bank", 1 })), "")
	l.rollouts.following.follow(other, &rollout{})
	p := l.debounce.pend(w, changeOf(nil))
	l.debounce.release(p, now)
	l.dispatcher.dispatch(t.Context())
	if p.held != plan.Limit {
		t.Fatalf("it waits for %s, want a slot", p.held)
	}
	now = now.Add(time.Hour)
	l.rollouts.following.unfollow(other)
	l.dispatcher.dispatch(t.Context())
	next := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	if p.held != plan.WindowClosed || p.due.Before(next) || p.due.After(next.Add(3*time.Minute)) {
		t.Errorf("it waits for %s until %s", p.held, p.due)
	}
}

// The event was delivered to an earlier leader, which reported another reason or none.
func TestAHoldThatBeginsAfterARestartIsTold(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	options := testOptions()
	options.MaxRollouts = 1
	w.Progress.Pods = 1
	other := workloadOf(t, "auto", wholeDB, named("other", func(w *workload.Workload) { w.Progress.Pods = 1 }))
	l := loopOf(t, options, w, other)
	l.rollouts.following.follow(other.Key(), &rollout{})
	p := l.debounce.pend(w, changeOf(nil))
	p.changes[db].event.delivery.Deliveries = 2
	l.debounce.release(p, written)
	l.dispatcher.dispatch(t.Context())
	if !p.needsSlot() {
		t.Fatalf("it waits for %s, want a slot", p.held)
	}
	held := *w
	held.Version, held.Hold = "51", "tofu apply"
	l.intake.index.Listed(&held, "")
	l.debounce.release(p, written)
	l.dispatcher.dispatch(t.Context())
	if got := l.outbox.waiting; p.held != plan.OnHold || len(got) != 2 || got[1].outcome.Reason != plan.OnHold.String() {
		t.Errorf("it waits for %s, and is told of %+v", p.held, got)
	}
}

// TestASourceThatChangesAllTheTimeRollsAWorkloadOnceInEachInterval changes it every five seconds for ten minutes.
func TestASourceThatChangesAllTheTimeRollsAWorkloadOnceInEachInterval(t *testing.T) {
	const every, during = 5 * time.Second, 10 * time.Minute
	deployment := deploymentOf("web", "db", map[string]string{workload.AnnotationRollOn: "auto", workload.AnnotationMinInterval: "2m"})
	c := newStreamless(t, deployment)
	began := time.Now().Truncate(time.Second)
	now, options := began, c.options()
	options.Now = func() time.Time { return now }
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := a.index.Read(deployments, c.get("web"))
	a.index.Listed(w, "")
	l := newLoop(a.surroundings, unwritten(a))
	settle := func() {
		l.dispatcher.dispatch(t.Context())
		for !l.patcher.idle() {
			l.completion.finish(t.Context(), <-l.patcher.results)
			l.dispatcher.dispatch(t.Context())
		}
	}
	last := ""
	for i := 1; now.Sub(began) < during; i++ {
		version := c.next()
		last = fp(string("0123456789abcdef"[i%16]))
		e := eventOf(changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = version, version, last }))
		e.delivery.Received, e.delivery.Seq, e.open = now, uint64(i), 1
		l.intake.consider(t.Context(), e, a.index.Get(w.Key()), nil)
		settle()
		now = now.Add(every)
		settle()
	}
	inTime := len(c.patches())
	if inTime < 5 || inTime > 6 {
		t.Errorf("it is rolled %d times in ten minutes, want once in two", inTime)
	}
	now = now.Add(2 * time.Minute)
	settle()
	got, _ := a.index.Read(deployments, c.get("web"))
	if rolls := len(c.patches()); got.Rolled["secret/db"].Fingerprint != last || rolls > 6 {
		t.Errorf("after %d rolls it has %s, want the last content, %s", rolls, got.Rolled["secret/db"].Fingerprint, last)
	}
}
