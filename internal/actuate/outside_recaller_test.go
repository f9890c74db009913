//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// What a workload has missed is read from the stream.
func TestARecalledEventIsReadUntilItIsThere(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", reads("secret/db"))
		s.workload("other", auto, reads("secret/db"))
		s.begin("secret/db")
		moment := s.reserve()
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantRolls("other")
		s.wantTold("other started content-changed", "other completed rolled-out")
		s.nats.Stop()
		s.at(moment, func() { s.edit("web", auto) })
		s.pass(20 * time.Second)
		s.wantRolls()
		s.nats.Start()
		s.pass(time.Minute)
		s.wantWrites("web rolled")
		s.wantRecord("web", "secret/db")
		s.wantAmongTold("web started content-changed", "web completed rolled-out")
	})
}

// In a dry run, nothing on the workload shows that it was decided.
func TestAChangeThatAWorkloadHasMissedIsToldOnceInADryRun(t *testing.T) {
	play(t, func(s *scene) {
		s.options.DryRun = true
		s.workload("web", reads("secret/db"))
		s.begin("secret/db")
		moment := s.reserve()
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantNothing()
		s.at(moment, func() { s.edit("web", auto) })
		s.pass(time.Hour)
		s.wantWrites()
		s.wantTold("web skipped dry-run")
		s.set("secret/db", "password", "three")
		s.pass(time.Hour)
		s.wantWrites()
		s.wantTold("web skipped dry-run")
	})
}
