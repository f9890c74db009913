//go:build !race

package actuate_test

import (
	"strings"
	"testing"
	"time"
)

// The failed workload has a pending change that may repair it. A lower wave goes first with that change, but waits for a still lower one, and that
// one waits for the repair.
func TestARepairWaitsForNobodyWhoWaitsForItThroughAnother(t *testing.T) {
	for _, order := range [][]string{{"between", "failed"}, {"failed", "between"}} {
		playOf(t, "in the order "+strings.Join(order, ", "), func(s *scene) {
			s.workload("first", auto, inWave(0), onHold, reads("secret/bad", "secret/other"))
			s.workload("between", auto, inWave(1), reads("secret/other", "secret/repair", "secret/between"))
			s.workload("failed", auto, inWave(2), reads("secret/repair", "secret/bad", "secret/failed"))
			s.begin("secret/bad", "secret/other", "secret/repair", "secret/between", "secret/failed")
			s.stall("first")
			s.stall("failed")
			s.set("secret/bad", "password", "two")
			s.settle()
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
