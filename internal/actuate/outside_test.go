//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

func TestAChangeRollsWhoReadsIt(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("other", auto, reads("secret/other"))
		s.begin("secret/db", "secret/other")
		s.wantRolls()
		s.rotate("two", "web")
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.restart()
		s.pass(time.Hour)
		s.wantNothing()
	})
}
