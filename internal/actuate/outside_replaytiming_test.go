//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

func TestAReplayIsTimedFromItsRequest(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web", auto, reads("secret/db"))
		s.begin("secret/db")
		s.refuse("web", deniedByAdmission())
		s.set("secret/db", "password", "two")
		s.pass(2 * time.Minute)
		s.refuse("web", nil)
		s.pass(2 * time.Hour)
		s.wantRolls()
		s.replayDeadLetters()
		s.pass(time.Minute)
		s.wantRolls("web")
		for _, name := range []string{"keyturn.change.patch.duration", "keyturn.change.ready.duration"} {
			if count, sum := seen.spent(name); count != 1 || sum < 0.9 || sum > 2 {
				s.Errorf("%s: %d changes took %g s together, want one that took a second", name, count, sum)
			}
		}
	})
}
