//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// failures are the ways in which the rollout of a canary ends before its pods are ready, and the outcome of each.
var failures = []struct {
	name string
	fail func(s *scene, name string)
	told string
}{
	{"its controller has given up", func(s *scene, name string) {
		s.fail(name)
		s.pass(time.Second)
	}, "a failed deadline-exceeded"},
	{"it has timed out", func(s *scene, _ string) { s.pass(s.options.RolloutTimeout + 15*time.Second) }, "a failed timed-out"},
}

func TestACanaryWhoseRolloutFailedBakesWhenItIsReadyAfterAll(t *testing.T) {
	for _, failure := range failures {
		playOf(t, failure.name, func(s *scene) {
			s.options.Canary = true
			s.readers("secret/db", "a", "b")
			s.begin("secret/db")
			s.stall("a")
			s.rotate("two", "a")
			s.wantTold("a started content-changed", "b held canary-first")
			failure.fail(s, "a")
			s.wantTold(failure.told, "b held peer-failed")
			s.finish("a")
			s.pass(time.Minute)
			s.pods("a", 1, 0)
			s.pass(bakeTime + bakeCheck)
			s.wantRolls() // The pods did not stay ready.
			s.pods("a", 1, 1)
			s.pass(bakeTime - time.Second)
			s.wantRolls()
			s.wantTold()
			s.pass(bakeCheck)
			s.wantRolls("b")
			s.wantTold("a completed rolled-out", "b started content-changed", "b completed rolled-out")
		})
	}
}

func TestARestartSparesNoFailedCanaryItsBake(t *testing.T) {
	for _, failure := range failures {
		for when, readyBefore := range map[string]bool{"before its pods are ready": false, "after that": true} {
			playOf(t, failure.name+", and the actuator restarts "+when, func(s *scene) {
				s.options.Canary = true
				s.readers("secret/db", "a", "b")
				s.workload("c", auto, inWave(1), reads("secret/db"))
				s.begin("secret/db")
				s.stall("a", "b")
				s.settled("secret/db", "password", "two")
				failure.fail(s, "a")
				if readyBefore {
					s.finish("a")
				}
				s.restart()
				if !readyBefore {
					s.pass(time.Minute)
					s.finish("a")
				}
				s.pass(bakeTime - time.Second)
				s.wantRolls("a")
				s.pass(bakeCheck)
				s.wantRolls("b")
				s.restartFor(time.Minute)
				s.wantRolls()
				s.finish("b")
				s.pass(time.Second)
				s.wantRolls("c") // a does not bake again for the next leader.
			})
		}
	}
}

func TestACanaryThatFailedGoesFirstWithTheNextChange(t *testing.T) {
	for _, failure := range failures {
		playOf(t, failure.name, func(s *scene) {
			s.options.Canary = true
			s.workload("a", auto, reads("secret/db"))
			s.workload("b", auto, inWave(-1), onHold, reads("secret/db"))
			s.workload("c", auto, reads("secret/db"))
			s.begin("secret/db")
			s.stall("a")
			s.rotate("two", "a")
			failure.fail(s, "a")
			s.edit("b", letGo) // Without the failure, it would go first.
			s.pass(time.Minute)
			s.rotate("three", "a")
			s.finish("a")
			s.pass(bakeTime - time.Second)
			s.wantRolls()
			s.pass(bakeCheck)
			s.wantRolls("b", "c")
		})
	}
}

func TestAFailedWorkloadForWhichNobodyWaitsNeedNotBake(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Canary = true
		seen := s.instrument()
		s.workload("a", auto, reads("secret/db"))
		s.begin("secret/db")
		s.stall("a")
		s.rotate("two", "a")
		s.pass(s.options.RolloutTimeout + 15*time.Second)
		s.wantTold("a started content-changed", "a failed timed-out")
		seen.wantFailing(1)
		s.wantWrites("a recorded") // that it has failed
		s.finish("a")
		s.pass(10 * time.Second)
		seen.wantFailing(0)
		s.wantWrites("a recorded") // that it has not
		s.restartFor(10 * time.Second)
		seen.wantFailing(0)
		s.pass(time.Hour)
		s.wantNothing()
	})
}
