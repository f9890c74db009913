//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// What a leader was about to see to its end.
func TestLedgerARolloutInProgressOverALeader(t *testing.T) {
	// rolling rolls web, whose new pods do not become ready, and starts the next leader.
	rolling := func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.atRest("secret/db")
		s.stall("web")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.soFar()
	}
	testFixtures(t, []fixture{
		{
			name: "it takes a slot",
			play: func(s *scene) {
				s.options.MaxRollouts = 1
				s.workload("api", auto, reads("secret/api"))
				s.observe("secret/api")
				rolling(s)
				s.set("secret/api", "password", "two")
				s.rest()
				s.restart()
				s.pass(3 * time.Minute)
				s.wantRolls()
				s.soFar()
				s.finish("web")
				s.pass(11 * time.Minute)
			},
			want: ends{rolls: "api", told: "api started content-changed; api completed rolled-out; web completed rolled-out"},
		},
		{
			name: "its failure keeps others back",
			play: func(s *scene) {
				s.workload("api", auto, annotated("keyturn.dev/wave", "1"), reads("secret/db"))
				rolling(s)
				s.fail("web")
				s.rest()
				s.restart()
				s.pass(time.Minute)
				s.soFar()
				s.pass(time.Hour)
			},
		},
	})
}

// A patch tests that nobody has rolled the workload meanwhile.
func TestLedgerTwoActuatorsThatBothLead(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "roll a workload once",
			play: func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.observe("secret/db")
				s.start()
				s.start()
				s.rest()
				s.set("secret/db", "password", "two")
				s.pass(11 * time.Minute)
			},
			want: rolled("web"),
		},
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
			s.restart()
			s.pass(time.Minute)
		})(s)
		s.wantRolls("web")
		if got := s.podAnnotation("web", events.AnnotationTraceparent); got != parent {
			s.Errorf("the pod template says %q, want the trace %s", got, parent)
		}
	})
}
