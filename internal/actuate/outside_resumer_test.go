//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// The servers of a stream may be lost at the same time as the leader of the actuators.
func TestANewLeaderReadsTheLastOutcomesWhenTheStreamAnswers(t *testing.T) {
	play(t, func(s *scene) {
		s.options.LeaderElect = true
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		first := s.start()
		s.start()
		s.pass(time.Minute)
		s.stall("web")
		s.rotate("two", "web")
		s.wantTold("web started content-changed")
		first.kill()
		s.nats.Stop()
		s.pass(45 * time.Second)
		if got := s.logged("last outcomes not readable; reading them again"); got < 4 {
			s.Errorf("the next leader has asked %d times in vain, want several times", got)
		}
		s.nats.Start()
		s.pass(10 * time.Second)
		s.finish("web")
		s.pass(10 * time.Second)
		s.wantTold("web completed rolled-out")
		s.wantRolls()
	})
}
