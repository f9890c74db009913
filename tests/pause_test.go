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
	r.rolls("it changes again and again, and the actuator starts once more", tally{"deployment/web": 1}, func() {
		db("two")
		r.eventually("the first change is held", func(context.Context) bool {
			return strings.Contains(r.explain("deployment/web"), "(pause-period)")
		})
		r.eventually("the Deployment says since when", func(context.Context) bool {
			first = begun()
			return !first.IsZero()
		})
		db("three")
		r.stop(r.actuator)
		r.startActuator()
		db("four")
	})
	if early := time.Until(first.Add(period)); early > 0 {
		t.Errorf("it was rolled %s before the end of the period", early)
	}
	r.eventually("nothing is left of the pause", func(context.Context) bool { return begun().IsZero() })
	if r.deployment("web").Spec.Paused {
		t.Error("spec.paused is set")
	}
}
