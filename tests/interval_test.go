package tests

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// TestAnIntervalMakesOneRollOfAllChangesWithinIt has a second workload without the interval, which may be rolled twice within an hour.
func TestAnIntervalMakesOneRollOfAllChangesWithinIt(t *testing.T) {
	t.Parallel()
	// Within it the actuator starts again, also on a busy machine.
	const interval = 45 * time.Second
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--min-interval", interval.String()}})
	rolledAt := func() time.Time {
		at, _ := time.Parse(time.RFC3339, r.deployment("web").Annotations["keyturn.dev/rolled-at"])
		return at
	}
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.deploy(r.reading("often", "db", 1, map[string]string{"keyturn.dev/min-interval": "0s", "keyturn.dev/max-rolls-per-hour": "2"}))
	r.start()
	before := r.tally()
	often := func(times int64) func(context.Context) bool {
		return func(context.Context) bool { return r.tally().since(before)["deployment/often"] == times }
	}
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the first change has rolled", func(context.Context) bool { return !rolledAt().IsZero() })
	r.eventually("it has rolled the other", often(1))
	first := rolledAt()
	r.secret("db", map[string]string{"password": "three"})
	r.isHeld("web", "rolled-recently", "until "+first.Add(interval).UTC().Format(time.RFC3339))
	r.eventually("the second change has rolled the other", often(2))
	r.stop(r.actuator)
	r.startActuator()
	r.secret("db", map[string]string{"password": "four"})
	r.eventually("it is rolled again", func(context.Context) bool { return r.tally().since(before)["deployment/web"] == 2 })
	r.isHeld("often", "rolled-too-often", "2 since ")
	r.annotateDeployment("often", "keyturn.dev/roll-now", "1")
	r.eventually("it is rolled for the last change when somebody asks for it", often(3))
	r.quiet()
	if second := rolledAt(); second.Before(first.Add(interval)) {
		t.Errorf("it was rolled at %s, and then at %s: want %s or more between them", first, second, interval)
	}
	if got := r.tally().since(before)["deployment/web"]; got != 2 {
		t.Errorf("it was rolled %d times, want 2", got)
	}
	for _, name := range []string{"deployment/web", "deployment/often"} {
		r.hasRolledForTheLast(name, events.Source{Kind: events.KindSecret, Name: "db"})
	}
}
