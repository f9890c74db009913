//go:build !race

package actuate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
)

// An operator that knows nothing of a roll restores the pod template of before, again and again, while the new pods start.
func TestARollThatIsRevertedIsRepeatedAndAtLastGivenUp(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password"))
		s.begin("secret/db")
		s.stall("web")
		s.settled("secret/db", "password", "two")
		delays := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
		revisions := map[string]bool{}
		for round := range plan.RevertRetries + 1 {
			s.wantRolls("web")
			s.revert("web")
			last, next := s.lastOf("web"), "it is not rolled again for this change"
			if round < len(delays) {
				next = "it is rolled again in " + delays[round].String()
			}
			if !strings.Contains(last.Message, `"operator"`) || !strings.Contains(last.Message, next) {
				s.Errorf("round %d: the message is %q, want who reverted it, and that %s", round, last.Message, next)
			}
			revisions[last.Revision] = true
			if round < len(delays) {
				s.pass(delays[round] - 10*time.Second)
				s.wantRolls()
				s.pass(15 * time.Second)
			}
		}
		if len(revisions) != plan.RevertRetries+1 {
			s.Errorf("there are %d revisions, want one for each roll", len(revisions))
		}
		s.pass(time.Hour)
		s.wantRolls()
		s.wantTold()

		s.set("secret/db", "user", "two") // which web does not read: for web, that is the same change
		s.settle()
		s.wantRolls()
		s.wantTold("web skipped reverted")
		s.rotate("three", "web")
	})
}

func TestRevertsAreCountedWhenTheCountIsRemovedToo(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		for _, delay := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour} {
			s.wantRolls("web")
			s.revert("web", wiped)
			s.edit("web", wiped) // of what was written after the revert
			s.pass(delay - 10*time.Second)
			s.wantRolls()
			s.pass(15 * time.Second)
		}
		s.wantRolls()
		s.rotate("three", "web")
	})
}

func TestARevertedRollLeavesTheRecordOfBefore(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		before := s.annotation("web", annotationRecord)
		if before == "" {
			s.Fatal("the first content is not recorded")
		}
		s.stall("web")
		s.rotate("two", "web")
		if s.annotation("web", annotationRecord) == before {
			s.Fatal("the roll is not recorded")
		}
		s.revert("web")
		if got := s.annotation("web", annotationRecord); got != before {
			s.Errorf("the record is %s, want %s", got, before)
		}
		// The next leader does not know whether pods with the other content are left.
		s.loosen("web")
		s.restart()
		s.set("secret/db", "password", "one")
		s.pass(time.Hour)
		s.wantRolls("web")
		s.wantTold("web started changed-meanwhile", "web completed rolled-out")
	})
}

func TestAnotherPodTemplateSupersedesARoll(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		record := s.annotation("web", annotationRecord)
		s.edit("web", unrolled, image("example.com/app:2"))
		s.pass(time.Hour)
		s.wantTold("web started content-changed", "web skipped superseded")
		s.wantRolls()
		if got := s.annotation("web", annotationRecord); got != record {
			s.Errorf("the record is %s, want %s: the pods are new", got, record)
		}
	})
}

func TestTheNextLeaderGoesOnWithWhatWasReverted(t *testing.T) {
	play(t, func(s *scene) {
		first := s.rolling()
		s.wantRolls("web")
		s.refuse("web", unavailable())
		s.revert("web")
		claims := s.annotation("web", annotationRecord)
		first.kill()

		s.refuse("web", nil)
		s.startFor(5 * time.Second)
		s.wantRolls()
		if s.annotation("web", annotationRecord) == claims {
			s.Error("the record still says that the pods are new")
		}
		s.restartFor(50 * time.Second)
		s.wantRolls()
		s.pass(15 * time.Second)
		s.wantRolls("web")
		s.wantTold("web started content-changed")
	})
}

// refusedToNote has a roll reverted while admission refuses all patches of the workload, and lets an hour pass.
func refusedToNote(s *scene) {
	s.Helper()
	s.rolling()
	s.wantRolls("web")
	s.refuse("web", deniedByAdmission())
	s.revert("web")
	s.pass(time.Hour)
}

func TestARevertThatAdmissionLetsNobodyNoteIsNotedOnceItDoes(t *testing.T) {
	play(t, func(s *scene) {
		refusedToNote(s)
		s.wantRolls()
		s.refuse("web", nil)
		s.pass(13 * time.Minute) // It is tried again within eleven minutes, and the roll is repeated a minute later.
		s.wantRolls("web")
	})
}

// By then the roll is longer ago than a rollout may make no progress.
func TestTheNextLeaderNotesARevertThatAdmissionLetNobodyNoteForLong(t *testing.T) {
	play(t, func(s *scene) {
		refusedToNote(s)
		s.restart()
		s.refuse("web", nil)
		s.pass(13 * time.Minute)
		s.wantRolls("web")
		s.restart()
		s.pass(time.Hour)
		s.wantRolls()
	})
}

func TestARollThatAdmissionStripsIsDenied(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		before := s.annotation("web", annotationRecord)
		allow := s.strip()
		s.set("secret/db", "password", "two")
		s.pass(30 * time.Second)
		s.wantTold()
		if got := s.annotation("web", annotationRecord); got != before {
			s.Errorf("the record is %s, want %s", got, before)
		}
		s.pass(10 * time.Second)
		s.wantTold("web failed patch-denied")
		s.wantLast("web", "failed patch-denied", "webhook")
		s.pass(time.Hour)
		s.wantRolls()
		s.wantTold()
		if got := s.annotation("web", annotationRecord); got != before {
			s.Errorf("after an hour, the record is %s, want %s", got, before)
		}
		allow()
		s.rotate("three", "web")
	})
}
