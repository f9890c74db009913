//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Without --canary, one workload goes first only after another one that failed was repaired.
func TestOneWorkloadGoesFirstAfterAnotherWasRepairedByHand(t *testing.T) {
	tests := []struct {
		name string
		// ends is how the rollout of the one that goes first ends, and want who is rolled then.
		ends func(s *scene)
		want []string
	}{
		{"it is in progress", func(*scene) {}, nil},
		{"it has succeeded", func(s *scene) { s.finish("first") }, []string{"second", "third"}},
		{"it has failed", func(s *scene) { s.fail("first") }, nil},
		{"it is gone", func(s *scene) { s.delete("first") }, []string{"second"}},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			failedFirst(s)
			s.repair("failed")
			s.pass(time.Second)
			s.wantRolls("first")
			tt.ends(s)
			s.pass(10 * time.Minute)
			s.wantRolls(tt.want...)
		})
	}
	playOf(t, "there is none: the one that failed is complete after all, so the content is good", func(s *scene) {
		failedFirst(s)
		s.finish("failed")
		s.pass(time.Second)
		s.wantRolls("first", "second", "third")
	})
}

// failedFirst has a workload fail that is rolled for a change before three others of a higher wave, which are looked at in their order.
func failedFirst(s *scene) {
	s.Helper()
	s.workload("failed", auto, inWave(-1), reads("secret/db"))
	others := []string{"first", "second", "third"}
	for _, name := range others {
		s.workload(name, auto, reads("secret/db", "secret/"+name))
	}
	s.begin("secret/db", "secret/first", "secret/second", "secret/third")
	s.stall(append(others, "failed")...)
	s.lineUp(others...)
	s.rotate("two", "failed")
	s.fail("failed")
	s.pass(10 * time.Second)
	s.wantRolls()
	s.wantAmongTold("failed failed deadline-exceeded", "first held peer-failed", "second held peer-failed", "third held peer-failed")
}

// A workload of a lower wave that is on hold holds up no other, so one of a higher wave may go first. If the patch of that one fails after the hold,
// each would wait for the other.
func TestACanaryThatIsNotPatchedLetsALowerWaveGoFirst(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("failed", auto, inWave(-1), reads("secret/db"))
		s.workload("lower", auto, inWave(0), onHold, reads("secret/db"))
		s.workload("higher", auto, inWave(1), reads("secret/db"))
		s.begin("secret/db")
		s.stall("failed", "lower")
		s.rotate("two", "failed")
		s.fail("failed")
		s.pass(time.Second)
		s.refuse("higher", errors.New("connection reset"))
		s.repair("failed")
		s.pass(100 * time.Millisecond)
		s.wantRolls()
		s.edit("lower", letGo)
		s.pass(100 * time.Millisecond)
		s.wantRolls("lower")
		s.refuse("higher", nil)
		s.pass(10 * time.Minute)
		s.wantRolls()
		s.finish("lower")
		s.pass(time.Second)
		s.wantRolls("higher")
	})
}

// The workload that failed for db may be repaired by what changes next, app. Its pods then have both, so the others see from it whether db is good.
func TestAWorkloadThatFailedIsRepairedBeforeThoseThatWaitForIt(t *testing.T) {
	tests := []struct {
		name string
		// wave is that of the workload that failed. The others are of the waves 0 and 1.
		wave   int
		canary bool
	}{
		{"although one of them could go first with the repair", 0, true},
		{"although one of them is of a lower wave", 1, false},
		{"although one of them is both", 1, true},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.Canary = tt.canary
			s.workload("failed", auto, inWave(tt.wave), reads("secret/db", "configmap/app"))
			s.workload("another", auto, inWave(0), onHold, reads("secret/db", "configmap/app"))
			s.workload("third", auto, inWave(1), onHold, reads("secret/db", "configmap/app"))
			s.begin("secret/db", "configmap/app")
			s.stall("failed")
			s.rotate("two", "failed")
			s.fail("failed")
			s.edit("another", letGo)
			s.edit("third", letGo)
			s.pass(10 * time.Second)
			s.wantRolls()
			s.wantAmongTold("another held peer-failed", "third held peer-failed")
			s.pods("failed", 1, 0)
			s.set("configmap/app", "password", "two")
			s.pass(5 * time.Minute)
			s.wantRolls("failed")
			s.wantAmongTold("another held canary-first", "third held canary-first")
			s.finish("failed")
			s.pass(time.Hour)
			if rolls, want := s.whoRolled(), []string{"another", "third"}; !slices.Equal(rolls, want) {
				s.Errorf("in the end, rolled are %q, want %q", rolls, want)
			}
		})
	}
}

// The patch of the one that goes first after a repair fails for as long as a webhook is down.
func TestACanaryThatCannotBePatchedLetsAnotherOfItsWaveGoFirst(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("later", auto, inWave(1), reads("secret/db"))
		failedFirst(s)
		s.refuse("first", errors.New("webhook: internal error"))
		s.repair("failed")
		s.pass(10 * time.Second)
		s.wantRolls("second")
		s.pass(5 * time.Minute)
		s.wantRolls()
		s.finish("second")
		s.pass(time.Second)
		s.wantRolls("third")
		s.finish("third")
		s.pass(5 * time.Minute)
		s.wantRolls()
		s.finish("first")
		s.refuse("first", nil)
		s.pass(2 * time.Minute)
		s.wantRolls("first", "later")
	})
}

// While the patch of one is tried again and again, the change of another source comes, too.
func TestOfSeveralThatCannotBePatchedAndTheirPeersOneGoes(t *testing.T) {
	for _, canBePatched := range []string{"first", "second", "third"} {
		playOf(t, canBePatched+" can be patched", func(s *scene) {
			s.options.Canary = true
			others := slices.DeleteFunc([]string{"first", "second", "third"}, func(name string) bool { return name == canBePatched })
			for _, name := range []string{"first", "second", "third"} {
				s.workload(name, auto, reads("secret/db", "configmap/app"))
			}
			s.begin("secret/db", "configmap/app")
			s.stall(canBePatched)
			for _, name := range others {
				s.refuse(name, errors.New("connection reset"))
			}
			s.set("secret/db", "password", "two")
			s.pass(1500 * time.Millisecond)
			s.set("configmap/app", "password", "two")
			s.pass(time.Minute)
			if rolls := slices.Compact(s.whoRolled()); !slices.Equal(rolls, []string{canBePatched}) {
				s.Errorf("rolled are %q", rolls)
			}
			for _, name := range others {
				s.refuse(name, nil)
			}
			s.pass(5 * time.Minute)
			s.wantRolls()
			s.finish(canBePatched)
			s.pass(bakeTime + time.Minute)
			s.wantRolls(others...)
		})
	}
}

// The failed workload has a pending change that may repair it. A lower wave goes first with that change, but waits for a still lower one, and that
// one waits for the repair.
func TestARepairWaitsForNobodyWhoWaitsForItThroughAnother(t *testing.T) {
	for _, order := range [][]string{{"between", "failed"}, {"failed", "between"}} {
		playOf(t, "in the order "+strings.Join(order, ", "), func(s *scene) {
			s.workload("first", auto, inWave(0), onHold, reads("secret/bad", "secret/other"))
			s.workload("between", auto, inWave(1), reads("secret/other", "secret/repair", "secret/between"))
			s.workload("failed", auto, inWave(2), reads("secret/repair", "secret/bad", "secret/failed"))
			s.begin("secret/bad", "secret/other", "secret/repair", "secret/between", "secret/failed")
			s.stall("first", "failed")
			s.settled("secret/bad", "password", "two")
			s.wantRolls("failed")
			s.fail("failed")
			s.pass(time.Second)
			s.pods("failed", 1, 0)
			s.lineUp(order...)
			s.set("secret/other", "password", "two")
			s.set("secret/repair", "password", "two")
			s.edit("first", letGo)
			s.settle()
			s.wantRolls("failed")
			s.wantAmongTold("first held peer-failed", "between held lower-wave", "first held canary-first")
			s.finish("failed") // The repair was one for the bad content, too.
			s.pass(time.Second)
			s.wantRolls("first")
			s.finish("first")
			s.pass(time.Second)
			s.wantRolls("between")
		})
	}
}
