//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// An actuator knows the last change of each source, and asks nobody for one.
func TestAChangeThatAWorkloadHasMissedRollsItWhileNATSIsSilent(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", reads("secret/db"))
		s.workload("other", auto, reads("secret/db"))
		s.begin("secret/db")
		moment := s.reserve()
		s.rotate("two", "other")
		s.wantTold("other started content-changed", "other completed rolled-out")
		s.nats.Stop()
		s.at(moment, func() { s.edit("web", auto) })
		s.pass(20 * time.Second)
		s.wantWrites("web rolled")
		s.wantRecord("web", "secret/db")
		s.nats.Start()
		s.pass(time.Minute)
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestARevertedRollIsRepeatedInTimeWhileNATSIsSilent(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		s.revert("web")
		s.nats.Stop()
		s.pass(50 * time.Second)
		s.wantRolls()
		s.pass(15 * time.Second)
		s.wantRolls("web")
		s.nats.Start()
		s.pass(time.Minute)
		s.wantTold("web started content-changed")
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

func TestAnOptInToAPatternOrAStoreMissesNoChangeOfThatMoment(t *testing.T) {
	tests := []struct {
		name, rollOn string
		changes      func(*scene)
	}{
		{"a source that only a pattern names", "configmap/release-*", func(s *scene) { s.set("configmap/release-1", "password", "two") }},
		{"a secret in a store", "openbao:secret/shop/db", func(s *scene) { s.rotateInStore("demo", "secret/shop/db", 2) }},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.workload("web", on("secret/db"))
			s.rotateInStore("demo", "secret/shop/db", 1)
			s.begin("secret/db", "configmap/release-1")
			s.rest()
			moment := s.reserve()
			tt.changes(s)
			s.settle()
			s.at(moment, func() { s.edit("web", on(tt.rollOn)) })
			s.pass(time.Minute)
			s.wantTold("web started content-changed", "web completed rolled-out")
			s.restart()
			s.pass(time.Hour)
			s.wantTold()
		})
	}
}
