//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// trial plays a scene with --canary.
func trial(t *testing.T, story func(s *scene)) {
	t.Helper()
	play(t, func(s *scene) {
		s.options.Canary = 5 * time.Minute
		story(s)
	})
}

// aGoesFirst makes two workloads that read secret/db, and has that change, for which a is rolled first.
func aGoesFirst(s *scene) {
	s.Helper()
	s.readers("secret/db", "a", "b")
	s.begin("secret/db")
	s.settled("secret/db", "password", "two")
}

func TestOneWorkloadBakesBeforeTheOthersRoll(t *testing.T) {
	trial(t, func(s *scene) {
		s.workload("c", auto, inWave(1), reads("secret/db"))
		s.workload("a-large", auto, reads("secret/db"))
		s.scale("a-large", 3)
		s.readers("secret/db", "b", "d")
		s.begin("secret/db")
		s.pods("a-large", 3, 3)
		s.stall("b", "d")
		s.rotate("two", "b")
		s.wantTold("a-large held canary-first", "b started content-changed", "c held canary-first", "d held canary-first")
		s.pass(time.Minute)
		s.finish("b")
		s.pass(bakeTime - time.Second)
		s.wantRolls()
		s.wantTold()
		s.pass(bakeCheck)
		s.wantRolls("a-large", "d")
		s.wantTold("a-large started content-changed", "b completed rolled-out", "c held lower-wave", "d started content-changed")
		s.pods("a-large", 3, 3)
		s.finish("d")
		s.pass(time.Second)
		s.wantRolls("c") // The others of the wave need not bake.
		s.wantTold("a-large completed rolled-out", "c started content-changed", "c completed rolled-out", "d completed rolled-out")
	})
}

func TestACanaryThatBakesTakesNoSlot(t *testing.T) {
	trial(t, func(s *scene) {
		s.options.MaxRollouts = 1
		s.readers("secret/db", "a", "b")
		s.workload("other", auto, reads("secret/other"))
		s.begin("secret/db", "secret/other")
		s.stall("a")
		s.rotate("two", "a")
		s.set("secret/other", "password", "two")
		s.pass(10 * time.Second)
		s.wantRolls()
		s.wantAmongTold("other held limit-reached")
		s.finish("a")
		s.pass(time.Second)
		s.wantRolls("other")
	})
}

func TestOthersWaitForACanaryThatDoesNotStayReady(t *testing.T) {
	trial(t, func(s *scene) {
		s.workload("a", auto, annotated(workload.AnnotationBake, "2m"), reads("secret/db"))
		s.workload("b", auto, reads("secret/db"))
		s.workload("held", auto, onHold, reads("secret/db"))
		s.begin("secret/db")
		s.rotate("two", "a")
		s.pass(time.Minute)
		s.pods("a", 1, 0)
		s.pass(time.Second)
		s.wantAmongTold("a failed bake-failed", "b held peer-failed")
		s.pods("a", 1, 1)
		s.pass(time.Minute)
		s.pods("a", 1, 0)
		s.pass(time.Minute)
		s.pods("a", 1, 1)
		s.restartFor(2*time.Minute - time.Second)
		s.wantRolls()
		s.pass(bakeCheck)
		s.wantRolls("b")
		s.wantAmongTold("a completed rolled-out")
		s.restartFor(time.Minute)
		s.edit("held", letGo)
		s.pass(time.Second)
		s.wantRolls("held") // Another leader does not take a for failed.
	})
}

func TestABakeSurvivesARestart(t *testing.T) {
	trial(t, func(s *scene) {
		s.readers("secret/db", "a", "b")
		s.workload("c", auto, inWave(1), reads("secret/db"))
		s.begin("secret/db")
		s.stall("a", "b")
		s.rotate("two", "a")
		s.restartFor(time.Minute)
		s.wantRolls()
		s.finish("a")
		s.pass(bakeTime - time.Second)
		s.restartFor(bakeTime - time.Second)
		s.wantRolls() // The bake has begun again.
		s.pass(bakeCheck)
		s.wantRolls("b")
		s.restartFor(time.Minute)
		s.wantRolls()
		s.finish("b")
		s.pass(time.Second)
		s.wantRolls("c") // Nobody bakes again.
	})
}

func TestACanaryThatCannotGoIsNotWaitedFor(t *testing.T) {
	nothing := func(*scene) {}
	for _, tt := range []struct {
		name string
		// first are aspects of the one that goes first if it can.
		first         []aspect
		before, after func(s *scene)
		want          []string
	}{
		{"it is on hold", []aspect{inWave(-1), onHold}, nothing, nothing, []string{"b"}},
		{
			"it was rolled recently",
			[]aspect{annotated(workload.AnnotationMinInterval, "1h"), annotated("keyturn.dev/rolled-at", midnight.Format(time.RFC3339))},
			nothing, nothing,
			[]string{"b"},
		},
		{"somebody has paused it", nil, nothing, func(s *scene) { s.pauseRollout("a") }, []string{"a", "b"}},
		{"it cannot be patched", nil, func(s *scene) { s.refuse("a", errors.New("connection reset")) }, nothing, []string{"b"}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.Canary = bakeTime
			s.workload("a", append(tt.first, auto, reads("secret/db"))...)
			s.readers("secret/db", "b", "c")
			s.begin("secret/db")
			s.stall("a", "b")
			tt.before(s)
			s.settled("secret/db", "password", "two")
			tt.after(s)
			s.pass(time.Minute)
			if rolls := s.whoRolled(); !slices.Equal(rolls, tt.want) {
				s.Errorf("rolled are %q, want %q", rolls, tt.want)
			}
		})
	}
}

func TestABakeBeginsAgainWhenSomebodyChangesThePods(t *testing.T) {
	trial(t, func(s *scene) {
		aGoesFirst(s)
		s.stall("a")
		s.pass(bakeTime - time.Minute)
		s.edit("a", image("app:2"))
		s.pass(2 * time.Minute)
		s.finish("a")
		s.pass(bakeTime - time.Second)
		s.wantRolls("a") // The new pods have not baked.
		s.pass(bakeCheck)
		s.wantRolls("b")
	})
}

func TestTheOnlyReaderOfASourceNeedNotBake(t *testing.T) {
	trial(t, func(s *scene) {
		s.workload("a", auto, reads("secret/db"))
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.wantTold("a started content-changed", "a completed rolled-out")
	})
}

func TestACanaryWhoseRolloutFailedBakesWhenItIsReadyAfterAll(t *testing.T) {
	trial(t, func(s *scene) {
		s.readers("secret/db", "a", "b")
		s.begin("secret/db")
		s.stall("a")
		s.rotate("two", "a")
		s.wantTold("a started content-changed", "b held canary-first")
		s.pass(s.options.RolloutTimeout + 15*time.Second)
		s.wantTold("a failed timed-out", "b held peer-failed")
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

func TestACanaryThatFailedGoesFirstWithTheNextChange(t *testing.T) {
	trial(t, func(s *scene) {
		s.workload("a", auto, reads("secret/db"))
		s.workload("b", auto, inWave(-1), onHold, reads("secret/db"))
		s.workload("c", auto, reads("secret/db"))
		s.begin("secret/db")
		s.stall("a")
		s.rotate("two", "a")
		s.fail("a")
		s.pass(time.Second)
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
