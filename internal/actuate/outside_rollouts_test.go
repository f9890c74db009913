//go:build !race

package actuate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAPatchWhoseAnswerWasLostIsFollowed(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.stall("web")
		s.loseAnswers()
		s.rotate("two", "web")
		s.wantTold("web started up-to-date")
		s.pass(2 * time.Second)
		s.wantTold()
		s.finish("web")
		s.pass(time.Hour)
		s.wantTold("web completed rolled-out")
		s.wantRolls()
	})
}

// killAfterPatch lets a leader roll web for a new password, and kills it before it can tell anybody.
func killAfterPatch(s *scene, leader *running, password string) {
	s.Helper()
	s.set("secret/db", "password", password)
	s.pass(500 * time.Millisecond)
	s.nats.Stop()
	s.settle()
	s.wantRolls("web")
	leader.kill()
	s.nats.Start()
	s.pass(5 * time.Second)
}

func TestARolloutThatNobodyHasReportedIsFound(t *testing.T) {
	found := []string{"web started up-to-date", "web completed rolled-out"}
	var left []string
	for _, tt := range []struct {
		name string
		// earlier says that an earlier rollout of the workload was reported, and old that the stream has an event from long before.
		earlier, old bool
		// stalled says that the pods have not started when the next leader comes.
		stalled bool
		// private says that the last leader had a stream of its own.
		private bool
		// later is how long after the patch the next leader comes.
		later time.Duration
		want  []string
	}{
		{name: "after one that was reported", earlier: true, want: found},
		{name: "if the stream is older, and so has no outcome of it", old: true, want: found},
		{name: "while it is in progress", stalled: true, want: []string{"web started up-to-date"}},
		{name: "unless the outcome may have expired", old: true, later: events.FullOutcomeTTL, want: left},
		{name: "unless the stream may have been lost, and the outcome with it", want: left},
		{name: "unless the last leader has reported it on a stream of its own", earlier: true, private: true, want: left},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.LeaderElect, s.options.PrivateStream = tt.private, tt.private
			s.workload("web", auto, reads("secret/db#password"))
			s.observe("secret/db")
			if tt.old {
				s.observe("secret/old")
			}
			leader := s.start()
			s.pass(time.Minute)
			if tt.earlier {
				s.rotate("two", "web")
				s.wantTold("web started content-changed", "web completed rolled-out")
				s.pass(time.Minute)
			}
			if tt.stalled {
				s.stall("web")
			}
			killAfterPatch(s, leader, "three")
			s.set("secret/db", "user", "three") // which web does not read
			s.pass(tt.later)
			s.startFor(30 * time.Second)
			s.wantTold(tt.want...)
			s.wantRolls()
			s.pass(noticeLook)
			if written := s.kubernetesEvents(); len(tt.want) == len(found) && !strings.Contains(textOf(written[len(written)-1]), "rolled for secret/db") {
				s.Errorf("the Kubernetes Event says %q, and not what it was rolled for", textOf(written[len(written)-1]))
			}
			if tt.stalled && len(tt.want) > 0 {
				s.finish("web")
				s.pass(time.Second)
				s.wantTold("web completed rolled-out")
			}
		})
	}
}

// An operator restores the pod template of before, which the record does not show.
func TestARollThatIsRevertedBeforeAnybodyIsToldIsRepeated(t *testing.T) {
	for _, tt := range []struct {
		name string
		roll func(*scene, *running)
	}{
		{"because its leader was killed", func(s *scene, leader *running) {
			killAfterPatch(s, leader, "two")
			s.writeAs("operator", "web", unrolled)
			s.start()
		}},
		{"because the answer was lost", func(s *scene, _ *running) {
			answer := s.loseAnswers()
			s.rotate("two", "web")
			s.writeAs("operator", "web", unrolled)
			answer()
		}},
	} {
		playOf(t, tt.name, func(s *scene) {
			leader := s.beginWeb()
			s.stall("web")
			tt.roll(s, leader)
			s.pass(2 * time.Minute)
			s.wantRolls("web")
			s.wantAmongTold("web started up-to-date", "web failed reverted", "web started content-changed")
			s.finish("web")
			s.pass(time.Hour)
			s.wantRolls()
			s.wantTold("web completed rolled-out")
		})
	}
}

func TestTheNextLeaderKnowsWhoseRolloutFailedAlthoughTheOutcomesAreLost(t *testing.T) {
	play(t, func(s *scene) {
		timedOut(s).stop()
		s.loseEvents()
		s.again("secret/db")
		s.startFor(time.Hour)
		s.wantRolls()
		s.finish("a")
		s.pass(10 * time.Second)
		s.wantRolls("b")
		s.restart()
		s.told()
		s.pass(time.Hour)
		s.wantNothing()
	})
}

// The API server is not well, so nothing is written on the workload, and another actuator becomes the leader.
func TestTheNextLeaderKnowsOfAFailureThatWasOnlyTold(t *testing.T) {
	for told, fails := range map[string]func(*scene){
		"a failed deadline-exceeded": func(s *scene) { s.fail("a") },
		"a failed bake-failed": func(s *scene) {
			s.finish("a")
			s.pass(time.Second)
			s.pods("a", 1, 0)
		},
	} {
		playOf(t, told, func(s *scene) {
			s.options.Canary = bakeTime
			s.readers("secret/db", "a", "b")
			s.begin("secret/db")
			s.stall("a")
			s.rotate("two", "a")
			s.refuse("a", unavailable())
			fails(s)
			s.pass(10 * time.Second)
			s.wantAmongTold(told, "b held peer-failed")
			s.restart()
			s.refuse("a", nil)
			s.pass(10 * time.Minute)
			s.wantRolls()
			s.finish("a")
			s.pass(bakeTime + bakeCheck)
			s.wantRolls("b")
		})
	}
}

// By then the roll is longer ago than a rollout may make no progress.
func TestTheNextLeaderNotesARevertThatAdmissionLetNobodyNoteForLong(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		s.refuse("web", deniedByAdmission())
		s.revert("web")
		s.pass(time.Hour)
		s.restart()
		s.refuse("web", nil)
		s.pass(13 * time.Minute)
		s.wantRolls("web")
		s.restartFor(time.Hour)
		s.wantRolls()
	})
}
