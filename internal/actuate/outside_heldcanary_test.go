//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// manyWait has workloads with --canary of which c has to go first, although all others are looked at before it: b has more pods, and z1 and z2 have
// none.
func manyWait(s *scene) {
	s.Helper()
	s.options.Canary = true
	for _, name := range []string{"z1", "b", "z2", "c"} {
		s.workload(name, auto, reads("secret/db", "secret/"+name))
	}
	s.scale("b", 50)
	s.scale("z1", 0)
	s.scale("z2", 0)
	s.begin("secret/db", "secret/z1", "secret/b", "secret/z2", "secret/c")
	s.stall("c")
}

// allChange changes what they read.
func allChange(s *scene) {
	s.Helper()
	s.lineUp("z1", "b", "z2", "c")
	s.set("secret/db", "password", "two")
}

func TestOneGoesFirstWhenWhatHeldAllIsOver(t *testing.T) {
	playOf(t, "the rollout of one that failed was undone", func(s *scene) {
		s.workload("a", auto, inWave(-1), reads("secret/db"))
		manyWait(s)
		s.stall("a")
		allChange(s)
		s.settle()
		s.wantRolls("a")
		s.fail("a")
		s.pass(10 * time.Second)
		s.wantRolls()
		s.wantAmongTold("b held peer-failed", "c held peer-failed", "z1 held peer-failed", "z2 held peer-failed")
		s.repair("a")
		s.pass(10 * time.Second)
		s.wantRolls("c")
		s.finish("c")
		s.pass(bakeTime - time.Second)
		s.wantRolls()
		s.pass(bakeCheck)
		s.wantRolls("b", "z1", "z2")
	})
	playOf(t, "the namespace is on hold no more", func(s *scene) {
		manyWait(s)
		s.namespaceSays(namespace, map[string]string{"keyturn.dev/hold": "tofu apply"})
		s.pass(time.Second)
		allChange(s)
		s.pass(time.Minute)
		s.wantRolls()
		s.wantAmongTold("b held on-hold", "c held on-hold", "z1 held on-hold", "z2 held on-hold")
		s.namespaceSays(namespace, nil)
		s.pass(time.Minute)
		s.wantRolls("c")
	})
	playOf(t, "Reloader has rolled what it rolls", func(s *scene) {
		s.options.Reloader = true
		s.workload("of-reloader")
		manyWait(s)
		allChange(s)
		s.reloaderRolls("of-reloader", "secret/of-reloader")
		s.settle()
		s.wantRolls()
		s.pass(3 * time.Second)
		s.wantRolls()
		s.pass(time.Minute)
		s.wantRolls("c")
	})
}

// b waits for the repair of a, which failed for a change that c does not have.
func TestOneThatWaitsForTheRepairOfAnotherDoesNotGoFirst(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Canary = true
		s.workload("a", auto, inWave(-1), reads("secret/other"))
		s.workload("b", auto, reads("secret/db", "secret/other"))
		s.workload("c", auto, reads("secret/db"))
		s.begin("secret/db", "secret/other")
		s.stall("a")
		s.settled("secret/other", "password", "two")
		s.wantRolls("a")
		s.fail("a")
		s.pass(time.Second)
		s.wantAmongTold("b held peer-failed")
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		s.wantRolls("c")
	})
}
