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
		s.observe("secret/db")
		s.start()
		s.rest()
		s.stall("web")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.soFar()
	}
	testFixtures(t, []fixture{
		{
			name: "its end is told",
			play: func(s *scene) {
				rolling(s)
				s.restart()
				s.pass(time.Minute)
				s.finish("web")
				s.pass(11 * time.Minute)
			},
			want: ends{told: "web completed rolled-out"},
		},
		{
			name: "it has failed once it has made no progress for as long under the next leader",
			play: func(s *scene) {
				rolling(s)
				s.pass(10 * time.Minute)
				s.restart()
				s.pass(14 * time.Minute)
				s.wantTold()
				s.pass(2 * time.Minute)
			},
			want: ends{told: "web failed timed-out"},
		},
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
		{
			name: "leave a workload that has not changed as it is",
			play: func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.begin("secret/db")
				s.set("secret/db", "password", "two")
				s.rest()
				s.start()
				s.pass(11 * time.Minute)
			},
			want: ends{quiet: true},
		},
	})
}

// An outcome is of what a leader has seen happen.
func TestLedgerWhatIsSkippedIsToldOnce(t *testing.T) {
	skipping := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.observe("secret/db")
			s.start()
			s.rest()
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

// People know that it waits.
func TestLedgerWhoWaitsIsToldAboutOnce(t *testing.T) {
	everybody := namesOf("web", 50)
	waiting := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.options.LeaderElect, s.options.MaxRollouts = true, 0
			for _, name := range everybody {
				s.workload(name, auto, onHold, reads("secret/db"))
			}
			s.observe("secret/db")
			s.start()
			s.rest()
			s.set("secret/db", "password", "two")
			s.rest()
			happens(s)
			s.pass(11 * time.Minute)
			s.wantNotices()
		}
	}
	testFixtures(t, []fixture{
		{name: "by the first of two leaders", play: waiting(func(s *scene) { s.restart() })},
		{
			name: "by the first of two leaders, if that is killed",
			play: waiting(func(s *scene) {
				first := s.running[0]
				s.start()
				first.kill()
			}),
		},
		{
			name: "and again when the source has changed again",
			play: func(s *scene) {
				s.workload("web", auto, onHold, reads("secret/db"))
				s.observe("secret/db")
				leader := s.start()
				s.rest()
				s.set("secret/db", "password", "two")
				s.rest()
				leader.stop()
				s.set("secret/db", "password", "three")
				s.start()
				s.pass(11 * time.Minute)
			},
			want: ends{told: "web held on-hold"},
		},
		{
			name: "and all of them roll once people let them",
			play: func(s *scene) {
				waiting(func(s *scene) { s.restart() })(s)
				for _, name := range everybody {
					s.edit(name, letGo)
				}
				s.pass(11 * time.Minute)
			},
			want: rolled(everybody...),
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
