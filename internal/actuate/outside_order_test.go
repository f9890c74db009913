//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A leader that begins looks at all workloads in no order.
func TestWavesKeepTheirOrderWhoeverIsLookedAtFirst(t *testing.T) {
	const many, perWave = 12, 4
	play(t, func(s *scene) {
		waveOf := make(map[string]int)
		for i := range many {
			name := fmt.Sprintf("web-%02d", i)
			waveOf[name] = i / perWave
			s.workload(name, auto, inWave(waveOf[name]), reads("secret/db"))
		}
		s.begin("secret/db").stop()
		s.set("secret/db", "password", "two")
		s.startFor(time.Minute)
		var waves []int
		for _, name := range s.whoRolled() {
			waves = append(waves, waveOf[name])
		}
		if len(waves) != many || !slices.IsSorted(waves) {
			s.Errorf("rolled are workloads of the waves %v, want %d in their order", waves, many)
		}
	})
}

// By its name, a would go first.
func TestAWorkloadThatFailsBeforeItsRollIsNeverTheCanary(t *testing.T) {
	trial(t, func(s *scene) {
		for _, name := range []string{"a", "b", "c"} {
			s.workload(name, auto, reads("secret/db"))
		}
		s.begin("secret/db")
		s.stall("a", "b")
		s.fail("a")
		s.rotate("two", "a", "b") // The change may be the repair of a.
		s.wantAmongTold("c held canary-first")
		s.fail("a")
		s.pass(time.Minute)
		s.wantRolls()
		s.finish("b")
		s.pass(bakeTime + bakeCheck)
		s.wantRolls("c")
	})
}

func TestTheCanaryIsOneWhosePodsAreReady(t *testing.T) {
	trial(t, func(s *scene) {
		s.readers("secret/db", "a", "b")
		s.begin("secret/db")
		s.pods("a", 1, 0)
		s.rotate("two", "b")
		s.wantAmongTold("a held canary-first")
		s.pass(bakeTime + bakeCheck)
		s.wantRolls("a")
	})
}

// What comes while its canary is rolled out may be what the pods lack, and one is enough to try it.
func TestASourceThatChangesDuringTheRolloutOfItsCanaryRollsThatAgain(t *testing.T) {
	trial(t, func(s *scene) {
		s.readers("secret/db", "a", "b")
		s.begin("secret/db")
		s.stall("a")
		for _, password := range []string{"two", "three"} {
			s.rotate(password, "a")
			s.pass(10 * time.Second)
		}
		s.finish("a")
		s.pass(bakeTime + bakeCheck)
		s.wantRolls("b")
	})
}

// Both have failed for a change of their own, and get the repair at the same time.
func TestWhoHasFailedWaitsForNobodyElse(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("a", auto, reads("secret/db", "configmap/app"))
		s.workload("b", auto, inWave(1), reads("secret/cache", "configmap/app"))
		s.begin("secret/db", "secret/cache", "configmap/app")
		s.stall("a", "b")
		s.set("secret/db", "password", "two")
		s.settled("secret/cache", "password", "two")
		s.wantRolls("a", "b")
		s.fail("a")
		s.fail("b")
		s.pass(10 * time.Second)
		s.settled("configmap/app", "password", "two")
		s.wantRolls("a", "b")
	})
}

// Their controllers have given up before, and do so again.
func TestThoseThatWereBrokenBeforeHoldUpNobodyAndAreRolledToo(t *testing.T) {
	const many, broken = 60, 5
	for name, canary := range map[string]bool{"all at once": false, "one first": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.options.Canary = canary
				var all []string
				for i := range many {
					all = append(all, fmt.Sprintf("web-%02d", i))
					s.workload(all[i], auto, reads("secret/db"))
				}
				s.begin("secret/db")
				for _, name := range all[:broken] {
					s.stall(name)
					s.fail(name)
				}
				s.set("secret/db", "password", "two")
				s.pass(bakeTime + time.Minute)
				s.wantRolls(all...)
				for _, outcome := range s.told() {
					if strings.Contains(outcome, "peer-failed") {
						s.Errorf("it is told: %s", outcome)
					}
				}
				s.pass(time.Hour)
				s.wantRolls()
			})
		})
	}
}

// The event of a deletion has the resourceVersion of the last change, with which all are ready.
func TestOneGoesFirstWithADeletion(t *testing.T) {
	trial(t, func(s *scene) {
		s.options.RollOnDelete = true
		s.workload("a", auto, reads("secret/db?"))
		s.workload("b", auto, reads("secret/db?"))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(bakeTime + time.Minute)
		s.wantRolls("a", "b")
		s.told()
		s.stall("a")
		s.erase("secret/db")
		s.settle()
		s.wantRolls("a")
		s.wantTold("a started deleted", "b held canary-first")
		s.finish("a")
		s.pass(bakeTime - time.Second)
		s.wantRolls()
		s.pass(bakeCheck)
		s.wantRolls("b")
	})
}

// The peer cannot start without the source, so it is not rolled, and does not recover.
func TestADeletionWaitsForNobodyWhoHasFailedWithWhatIsGone(t *testing.T) {
	play(t, func(s *scene) {
		s.options.RollOnDelete = true
		s.workload("peer", auto, reads("secret/db"))
		s.workload("web", auto, onHold, reads("secret/db?"))
		s.begin("secret/db")
		s.stall("peer")
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantRolls("peer")
		s.fail("peer")
		s.pass(time.Minute)
		s.erase("secret/db")
		s.pass(time.Minute)
		s.wantRolls()
		s.edit("web", letGo)
		s.pass(time.Minute)
		s.wantRolls("web")
	})
}
