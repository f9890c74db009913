//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// An aborted Rollout waits for weeks, and the event with it. The next leader has not seen the events that the one before has decided since.
func TestRecordsAreCompletedWhileAnEarlierEventIsHeld(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("held", auto, onHold, reads("secret/other"))
		s.observe("secret/other")
		s.set("secret/other", "password", "two")
		s.observe("secret/db")
		s.start()
		s.pass(11 * time.Minute)
		s.wantTold("held held on-hold")
		s.restart()
		s.workload("web", auto, reads("secret/db"))
		s.pass(11 * time.Minute)
		s.wantWrites("web recorded")
		s.wantRecord("web", "secret/db")
		s.wantTold()
	})
}
