package tests

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

const (
	pausePeriod = "deployment.reloader.stakater.com/pause-period"
	pausedAt    = "deployment.reloader.stakater.com/paused-at"
)

func TestAPausePeriodMakesOneRollOfAllChangesWithinIt(t *testing.T) {
	t.Parallel()
	const period = time.Hour
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	db := func(value string) { r.secret("db", map[string]string{"password": value}) }
	begun := func() time.Time {
		at, _ := time.Parse(time.RFC3339, r.deployment("web").Annotations[pausedAt])
		return at
	}
	db("one")
	r.deploy(r.reading("web", "db", 1, map[string]string{pausePeriod: period.String()}))
	r.deploy(r.reading("sooner", "db", 1, map[string]string{pausePeriod: (period / 2).String()}))
	r.placeFence()
	clock := &shiftedClock{}
	run := func() func() { return r.runAt(clock, func(o *actuate.Options) { o.Reloader = true }) }
	stop := run()
	r.startWatcher()
	before := r.tally()
	rolls := func(name string) int64 { return r.tally().since(before)["deployment/"+name] }

	db("two")
	r.isHeld("web", "pause-period", "")
	var first time.Time
	r.eventually("the Deployment says since when", func(context.Context) bool {
		first = begun()
		return !first.IsZero()
	})
	db("three")
	stop()
	run()
	db("four")
	r.reachFence()
	clock.goTo(first.Add(period - 5*time.Minute))
	// What waits for a time is reviewed all at once, now and then: when this one has rolled, the other has been reviewed, too.
	r.eventually("the one with the shorter period is rolled", func(context.Context) bool { return rolls("sooner") > 0 })
	r.reachFence()
	if got := rolls("web"); got != 0 {
		t.Errorf("it was rolled %d times before the end of the period", got)
	}

	clock.goTo(first.Add(period))
	r.eventually("it is rolled at the end of the period", func(context.Context) bool { return rolls("web") > 0 })
	r.passFence()
	if got := rolls("web"); got != 1 {
		t.Errorf("it was rolled %d times, want once", got)
	}
	r.hasRolledForTheLast("deployment/web", events.Source{Kind: events.KindSecret, Name: "db"})
	clock.goTo(first.Add(period + time.Minute))
	r.eventually("nothing is left of the pause", func(context.Context) bool { return begun().IsZero() })
	if r.deployment("web").Spec.Paused {
		t.Error("spec.paused is set")
	}
}
