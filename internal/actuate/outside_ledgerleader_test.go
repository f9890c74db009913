//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// A patch tests that nobody has rolled the workload meanwhile.
func TestLedgerTwoActuatorsThatBothLeadRollAWorkloadOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.start()
		s.start()
		s.rest()
		s.set("secret/db", "password", "two")
		s.pass(11 * time.Minute)
		s.wantEnds(rolled("web"))
	})
}

// An outcome is of what a leader has seen happen.
func TestLedgerWhatIsSkippedIsToldOnce(t *testing.T) {
	skipping := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.atRest("secret/db")
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	testFixtures(t, []fixture{
		{
			name: "and not by the next leader",
			play: skipping(func(s *scene) {
				s.set("secret/db", "user", "two")
				s.rest()
				s.restart()
			}),
			want: ends{quiet: true},
		},
		{
			name: "and not at all if it happens while nobody leads",
			play: skipping(func(s *scene) {
				for _, leader := range s.running {
					leader.stop()
				}
				s.set("secret/db", "user", "two")
				s.restart()
			}),
		},
		{
			name: "and not again if the watcher publishes it again",
			play: skipping(func(s *scene) {
				s.set("secret/db", "user", "two")
				s.rest()
				s.loseEvents("secret/db")
				s.again("secret/db")
			}),
		},
	})
}

func TestLedgerTheTraceOfAChangeOutlivesTheLeaderThatHeldIt(t *testing.T) {
	play(t, func(s *scene) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		holding(func(s *scene) {
			s.set("secret/db", "password", "three", func(change *events.Change) { change.Trace.Parent = parent })
			s.pass(time.Minute)
			s.restartFor(time.Minute)
		})(s)
		s.wantRolls("web")
		if got := s.podAnnotation("web", events.AnnotationTraceparent); got != parent {
			s.Errorf("the pod template says %q, want the trace %s", got, parent)
		}
	})
}
