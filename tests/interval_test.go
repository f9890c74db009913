package tests

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// TestAnIntervalMakesOneRollOfAllChangesWithinIt has a second workload without the interval, which may be rolled twice within an hour.
func TestAnIntervalMakesOneRollOfAllChangesWithinIt(t *testing.T) {
	t.Parallel()
	const interval = 30 * time.Minute // shorter than that hour
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	rolledAt := func() time.Time {
		at, _ := time.Parse(time.RFC3339, r.deployment("web").Annotations["keyturn.dev/rolled-at"])
		return at
	}
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.deploy(r.reading("sooner", "db", 1, map[string]string{"keyturn.dev/min-interval": (interval / 2).String()}))
	r.deploy(r.reading("often", "db", 1, map[string]string{"keyturn.dev/min-interval": "0s", "keyturn.dev/max-rolls-per-hour": "2"}))
	r.placeFence()
	for _, fence := range []string{"fence-secret", "fence-configmap"} {
		r.annotateDeployment(fence, "keyturn.dev/min-interval", "0s")
	}
	clock := &shiftedClock{}
	run := func() func() { return r.runAt(clock, func(o *actuate.Options) { o.MinInterval = interval }) }
	stop := run()
	r.startWatcher()
	before := r.tally()
	rolls := func(name string) int64 { return r.tally().since(before)["deployment/"+name] }
	often := func(times int64) func(context.Context) bool {
		return func(context.Context) bool { return rolls("often") == times }
	}

	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the first change has rolled", func(context.Context) bool { return !rolledAt().IsZero() })
	r.eventually("it has rolled the other", often(1))
	first := rolledAt()
	r.secret("db", map[string]string{"password": "three"})
	r.isHeld("web", "rolled-recently", "until "+first.Add(interval).UTC().Format(time.RFC3339))
	r.eventually("the second change has rolled the other", often(2))
	stop()
	run()
	r.secret("db", map[string]string{"password": "four"})
	r.isHeld("often", "rolled-too-often", "2 since ")
	clock.goTo(first.Add(interval - 5*time.Minute))
	// What waits for a time is reviewed all at once, now and then: when this one has rolled, the other has been reviewed, too.
	r.eventually("the one with the shorter interval is rolled again", func(context.Context) bool { return rolls("sooner") == 2 })
	r.reachFence()
	if got := rolls("web"); got != 1 {
		t.Errorf("it was rolled %d times before the end of the interval, want once", got)
	}

	clock.goTo(first.Add(interval))
	r.eventually("it is rolled again", func(context.Context) bool { return rolls("web") == 2 })
	r.annotateDeployment("often", "keyturn.dev/roll-now", "1")
	r.eventually("it is rolled for the last change when somebody asks for it", often(3))
	r.passFence()
	if second := rolledAt(); second.Before(first.Add(interval)) {
		t.Errorf("it was rolled at %s, and then at %s: want %s or more between them", first, second, interval)
	}
	if got := rolls("web"); got != 2 {
		t.Errorf("it was rolled %d times, want 2", got)
	}
	for _, name := range []string{"deployment/web", "deployment/often"} {
		r.hasRolledForTheLast(name, events.Source{Kind: events.KindSecret, Name: "db"})
	}
}
