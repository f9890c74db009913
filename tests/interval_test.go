package tests

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestAnIntervalMakesOneRollOfAllChangesWithinIt(t *testing.T) {
	t.Parallel()
	const interval = 15 * time.Second
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--min-interval", interval.String()}})
	rolledAt := func() time.Time {
		at, _ := time.Parse(time.RFC3339, r.deployment("web").Annotations["keyturn.dev/rolled-at"])
		return at
	}
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	before := r.tally()
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the first change has rolled", func(context.Context) bool { return !rolledAt().IsZero() })
	first := rolledAt()
	r.secret("db", map[string]string{"password": "three"})
	r.isHeld("web", "rolled-recently", "until "+first.Add(interval).UTC().Format(time.RFC3339))
	r.stop(r.actuator)
	r.startActuator()
	r.secret("db", map[string]string{"password": "four"})
	r.eventually("it is rolled again", func(context.Context) bool { return r.tally().since(before)["deployment/web"] == 2 })
	r.quiet()
	if second := rolledAt(); second.Before(first.Add(interval)) {
		t.Errorf("it was rolled at %s, and then at %s: want %s or more between them", first, second, interval)
	}
	if got := r.tally().since(before)["deployment/web"]; got != 2 {
		t.Errorf("it was rolled %d times, want 2", got)
	}
	r.hasRolledForTheLast("deployment/web", events.Source{Kind: events.KindSecret, Name: "db"})
}
