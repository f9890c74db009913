package tests

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
)

const (
	pausePeriod = "deployment.reloader.stakater.com/pause-period"
	pausedAt    = "deployment.reloader.stakater.com/paused-at"
)

func TestAPausePeriodMakesOneRollOfAllChangesWithinIt(t *testing.T) {
	t.Parallel() // most of it is waiting for the period
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--reloader"}})
	// Within it the actuator starts again, also on a busy machine.
	const period = 45 * time.Second
	db := func(value string) { r.secret("db", map[string]string{"password": value}) }
	begun := func() time.Time {
		at, _ := time.Parse(time.RFC3339, r.deployment("web").Annotations[pausedAt])
		return at
	}
	db("one")
	r.deploy(r.reading("web", "db", 1, map[string]string{pausePeriod: period.String()}))
	r.placeFence()
	r.start()

	var first time.Time
	r.rolls("it changes again and again, and the actuator starts once more", tally{"deployment/web": 2}, func() {
		db("two")
		r.eventually("the first change has rolled", func(context.Context) bool {
			first = begun()
			return !first.IsZero()
		})
		db("three")
		r.eventually("the second change is held", func(context.Context) bool {
			return strings.Contains(r.explain("deployment/web"), "(pause-period)")
		})
		r.stop(r.actuator)
		r.startActuator()
		db("four")
	})
	second := begun()
	if second.Before(first.Add(period)) {
		t.Errorf("it was rolled at %s, and then at %s: want %s or more between them", first, second, period)
	}
	r.eventually("nothing is left of the pause", func(context.Context) bool { return begun().IsZero() })
	if r.deployment("web").Spec.Paused {
		t.Error("spec.paused is set")
	}
}
