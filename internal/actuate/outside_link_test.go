//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// A watch may show a write late, after the event of a later change was taken.
func TestAChangeIsNotMissedByAWorkloadThatHasJustComeToWantIt(t *testing.T) {
	tests := []struct {
		name          string
		before, write func(*scene)
	}{
		{"an annotation", func(s *scene) { s.workload("web", reads("secret/db")) }, func(s *scene) { s.edit("web", auto) }},
		{"a reference", func(s *scene) { s.workload("web", auto) }, func(s *scene) { s.edit("web", reads("secret/db")) }},
		{"the whole workload", func(*scene) {}, func(s *scene) { s.workload("web", auto, reads("secret/db")) }},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			test.before(s)
			s.workload("other", auto, reads("secret/db"))
			s.begin("secret/db")
			moment := s.reserve()
			s.rotate("two", "other")
			s.at(moment, func() { test.write(s) })
			s.pass(time.Minute)
			s.wantRolls("web")
			s.wantTold(
				"other started content-changed", "other completed rolled-out", "web started content-changed", "web completed rolled-out",
			)
			s.wantRecord("web", "secret/db")
			s.restartFor(time.Hour)
			s.wantNothing()
		})
	}
}

func TestAWorkloadThatHasJustComeToWantAChangeIsRolledOnceWithALaterOne(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", reads("secret/db"))
		s.begin("secret/db")
		moment := s.reserve()
		s.settled("secret/db", "password", "two")
		s.at(moment, func() { s.edit("web", auto) })
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantRolls("web")
		s.wantRecord("web", "secret/db")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestAWorkloadThatComesToWantMoreWhileItIsPatchedIsToldOfNothingElse(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db", "secret/other"))
		s.begin("secret/db", "secret/other", "configmap/app")
		s.patchesTake("web", 5*time.Second)
		s.settled("secret/db", "password", "two")
		s.edit("web", on("auto, configmap/app"))
		s.pass(time.Minute)
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

// A standby sees what the leader sees, maybe sooner: the leader may be gone before it has decided.
func TestANewLeaderFindsWhatTheLastOneMayHaveMissed(t *testing.T) {
	play(t, func(s *scene) {
		s.options.LeaderElect = true
		s.workload("web", reads("secret/db"))
		s.workload("other", auto, reads("secret/db"))
		s.observe("secret/db")
		first := s.start()
		s.startFor(time.Minute)
		moment := s.reserve()
		s.rotate("two", "other")
		first.kill()
		s.at(moment, func() { s.edit("web", auto) })
		s.pass(time.Minute)
		s.wantWrites("web rolled")
		s.wantRecord("web", "secret/db")
		s.wantTold("other started content-changed", "other completed rolled-out", "web started content-changed", "web completed rolled-out")
	})
}
