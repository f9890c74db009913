//go:build !race

package actuate_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
)

// annotationMark has what the last roll was for, and what has become of it.
const annotationMark = "keyturn.dev/last"

// killBeforeTelling lets a leader roll a workload for a change of secret/db, and kills it before it can tell anybody.
func killBeforeTelling(s *scene, leader *running, name string) {
	s.Helper()
	s.set("secret/db", "password", "two")
	s.pass(500 * time.Millisecond)
	s.nats.Stop()
	s.settle()
	s.wantRolls(name)
	leader.kill()
	s.nats.Start()
	s.pass(5 * time.Second)
}

// An operator restores the pod template of before, which the record does not show.
func TestARollThatIsRevertedBeforeAnybodyIsToldIsRepeated(t *testing.T) {
	tests := []struct {
		name string
		roll func(*scene, *running)
	}{
		{
			"because its leader was killed",
			func(s *scene, leader *running) {
				killBeforeTelling(s, leader, "web")
				s.writeAs("operator", "web", unrolled)
				s.start()
			},
		},
		{
			"because the answer was lost",
			func(s *scene, _ *running) {
				answer := s.loseAnswers()
				s.rotate("two", "web")
				s.writeAs("operator", "web", unrolled)
				answer()
			},
		},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			leader := s.beginWeb()
			s.stall("web")
			tt.roll(s, leader)
			s.pass(2 * time.Minute)
			s.wantRolls("web")
			s.wantAmongTold("web started already-rolled", "web failed reverted", "web started content-changed")
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

func TestAFailureThatCannotBeWrittenIsToldAndHoldsThePeersNevertheless(t *testing.T) {
	play(t, func(s *scene) {
		stalled(s)
		s.refuse("a", deniedByAdmission())
		s.fail("a")
		s.pass(10 * time.Minute)
		s.wantRolls()
		s.wantTold("a started content-changed", "a failed deadline-exceeded", "b held lower-wave", "b held peer-failed")
		s.refuse("a", nil)
		s.pass(2 * time.Minute)
		s.restartFor(time.Hour)
		s.wantRolls()
		s.finish("a")
		s.pass(10 * time.Second)
		s.wantRolls("b")
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
		t.Run(told, func(t *testing.T) {
			trial(t, func(s *scene) {
				s.workload("a", auto, reads("secret/db"))
				s.workload("b", auto, reads("secret/db"))
				s.begin("secret/db")
				s.stall("a")
				s.set("secret/db", "password", "two")
				s.settle()
				s.wantRolls("a")
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
		})
	}
}

// Nothing becomes of it after that, so nothing makes anybody look at it.
func TestThatAWorkloadHasRecoveredIsWrittenOnceItCanBe(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("a", auto, reads("secret/db"))
		s.begin("secret/db")
		s.stall("a")
		s.set("secret/db", "password", "two")
		s.settle()
		s.fail("a")
		s.pass(10 * time.Second)
		failed := s.annotation("a", annotationMark)
		s.soFar()
		s.refuse("a", unavailable())
		s.finish("a")
		s.pass(10 * time.Second)
		s.refuse("a", nil)
		s.pass(5 * time.Minute)
		s.wantWrites("a recorded")
		if got := s.annotation("a", annotationMark); got == failed {
			s.Errorf("the mark is %s, want that it has recovered", got)
		}
	})
}

func TestAWorkloadThatWasFailingBeforeHoldsNobody(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("a", auto, reads("secret/db"))
		s.workload("b", auto, inWave(1), reads("secret/db"))
		s.begin("secret/db")
		s.stall("a")
		s.fail("a")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.fail("a")
		s.pass(time.Minute)
		s.wantRolls("a", "b")
		s.wantAmongTold("a failed deadline-exceeded", "b completed rolled-out")
	})
}

// A person undoes a rollout that is in progress while nobody leads.
func TestTheNextLeaderLeavesAloneWhatAPersonHasUndone(t *testing.T) {
	tests := map[string][]string{
		"web":            {"web started content-changed", "web skipped undone"},
		"statefulset/db": {"statefulset/db started content-changed"}, // The controllers of a scene replace its pods at once.
	}
	for name, told := range tests {
		playOf(t, name, func(s *scene) {
			s.workload(name, auto, reads("secret/db"))
			leader := s.begin("secret/db")
			s.set("secret/db", "password", "two")
			s.pass(time.Minute)
			s.wantRolls(name)
			undo := s.revisionOf(name)
			s.rest()
			s.stall(name)
			s.rotate("three", name)
			leader.stop()
			s.pass(time.Minute)
			undo()
			s.pass(time.Minute)
			s.startFor(time.Hour)
			s.wantRolls()
			s.restartFor(time.Hour)
			s.wantRolls()
			s.wantAmongTold(told...)
			s.rotate("four", name)
		})
	}
}

func TestNothingIsConcludedWithoutAMark(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling().stop()
		s.wantRolls("web")
		s.writeAs("helm", "web", without(annotationMark), unrolled)
		s.pass(time.Minute)
		s.startFor(time.Hour)
		s.wantWrites()
		s.wantTold("web started content-changed", "web skipped superseded")
	})
}

// A patch of another leader arrives just before that of this one, which the watch has not shown.
func TestAWorkloadThatAnotherLeaderRolledIsDecidedAgain(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.stall("web")
		s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
			if _, err := s.apply(request); err != nil {
				return true, nil, err
			}
			answer, err := s.apply(request)
			return true, answer, err
		})
		s.rotate("two", "web") // by the other leader
		record := s.annotation("web", annotationRecord)
		s.pass(time.Minute)
		s.wantTold("web started already-rolled")
		s.finish("web")
		s.pass(time.Hour)
		s.wantTold("web completed rolled-out")
		s.wantRolls()
		if got := s.annotation("web", annotationRecord); got != record {
			s.Errorf("the record became %s, want that of the other leader, %s", got, record)
		}
	})
}

// Another leader writes a later record just before the correction arrives.
func TestACorrectionOfAnEarlierRecordChangesNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		record := fmt.Sprintf(`{"secret/db":"k0a1b2c3d:0000000000000000000000000000000c@%s/%s"}`, s.nextVersion(), s.of("secret/db").published.UID)
		var written atomic.Bool
		s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
			if bytes.Contains(request.Patch, []byte("keyturn.dev~1reverted")) && written.CompareAndSwap(false, true) {
				s.writeAs(workload.FieldManager, "web", annotated(annotationRecord, record))
			}
			return false, nil, nil
		})
		s.edit("web", unrolled)
		s.pass(time.Hour)
		if !written.Load() {
			s.Fatal("nothing was corrected")
		}
		if got := s.annotation("web", annotationRecord); got != record {
			s.Errorf("the record is %s, want %s", got, record)
		}
		s.wantRolls()
	})
}
