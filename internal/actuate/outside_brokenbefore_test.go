//go:build !race

package actuate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Their controllers have given up before, and do so again.
func TestThoseThatWereBrokenBeforeHoldUpNobodyAndAreRolledToo(t *testing.T) {
	const many, broken = 60, 5
	for name, canary := range map[string]time.Duration{"all at once": 0, "one first": 5 * time.Minute} {
		playOf(t, name, func(s *scene) {
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
	}
}

// Its pod template still has the annotations of the roll before.
func TestOneThatAReleaseHasBrokenHoldsUpNobody(t *testing.T) {
	for leader, leads := range map[string]func(*scene){
		"the same leader": func(*scene) {},
		"the next leader": func(s *scene) { s.restart() },
	} {
		playOf(t, leader, func(s *scene) {
			s.readers("secret/db", "a")
			s.workload("b", auto, inWave(1), reads("secret/db"))
			s.begin("secret/db")
			s.set("secret/db", "password", "two")
			s.pass(time.Minute)
			s.wantRolls("a", "b")
			s.stall("a")
			s.edit("a", image("example.com/app:bad"))
			s.fail("a")
			s.pass(time.Minute)
			leads(s)
			s.told()
			s.set("secret/db", "password", "three")
			s.pass(10 * time.Second)
			s.wantRolls("a", "b")
			s.pass(time.Hour)
			s.wantRolls()
			for _, outcome := range s.told() {
				if strings.HasPrefix(outcome, "b held") {
					s.Errorf("it is told: %s", outcome)
				}
			}
		})
	}
}
