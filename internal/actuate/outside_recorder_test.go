//go:build !race

package actuate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAWorkloadWithoutARecordGetsOne(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("silent", annotated("team", "a"), reads("secret/db"))
		s.begin("secret/db")
		s.wantWrites("web recorded")
		s.wantRecord("web", "secret/db")
		s.pass(time.Hour)
		s.wantNothing()
		s.settled("secret/db", "password", "two")
		s.wantWrites("web rolled")
		s.wantTold("web started content-changed", "web completed rolled-out")
		// The change was before it.
		s.workload("late", auto, reads("secret/db"))
		s.pass(time.Minute)
		s.wantWrites("late recorded")
		s.wantRecord("late", "secret/db")
		s.pass(time.Hour)
		s.wantNothing()
	})
}

func TestADryRunRecordsNothing(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.options.DryRun = true
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.start()
		seen.want("keyturn.dry.run", "", "", 1)
		s.pass(time.Hour)
		s.wantNothing()
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		s.wantWrites()
		s.wantTold("web skipped dry-run")
	})
}

func TestARecordThatIsRemovedAgainAndAgainIsWrittenEverMoreSeldom(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.wantWrites("web recorded")
		var counts []int
		for range 2 {
			for range 4 * 12 {
				s.pass(5 * time.Minute)
				s.edit("web", without(annotationRecord))
			}
			counts = append(counts, len(s.writesSince(&s.seen)))
		}
		if counts[0] < 3 || counts[0] > 15 || counts[1] > 2 {
			s.Errorf("removed every five minutes, it is written %v times in four hours each", counts)
		}
		// It may opt in to more sources at any time.
		s.edit("web", without(annotationRecord), on("auto, configmap/app"))
		s.pass(2 * time.Minute)
		s.wantWrites("web recorded")
		s.wantTold()
	})
}

func TestRecordsArePacedAndTakeNoPlaceOfRolls(t *testing.T) {
	const count, pause = 40, 50 * time.Millisecond
	play(t, func(s *scene) {
		s.options.PatchWorkers = 1
		s.workload("web", auto, reads("configmap/app"))
		s.begin("secret/db", "configmap/app")
		s.wantWrites("web recorded")
		s.set("configmap/app", "mode", "fast")
		for i := range count {
			s.workload(fmt.Sprintf("new-%d", i), auto, reads("secret/db"))
		}
		s.settle()
		soon := s.writesSince(&s.seen)
		s.pass(time.Minute)
		all := append(soon, s.writesSince(&s.seen)...)
		records, rolled, last := 0, false, time.Time{}
		for i, w := range all {
			if w.rolls {
				rolled = w.workload == "web" && i < len(soon)
				continue
			}
			if records++; w.at.Sub(last) < pause {
				s.Errorf("%s gets its record %s after another one", w.workload, w.at.Sub(last))
			}
			last = w.at
		}
		if !rolled || records != count {
			s.Errorf("web is rolled in time: %t, and %d get a record, want %d", rolled, records, count)
		}
		if len(soon) > count/2+10 {
			s.Errorf("%d patches are sent in a second", len(soon))
		}
	})
}

func TestARecordThatIsRefusedIsNoFailedPatch(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.refuse("web", deniedByAdmission())
		s.startFor(time.Minute)
		s.wantNothing()
		if failed := seen.measurements()["keyturn.patch.errors"]; failed != nil {
			s.Errorf("counted: %+v", failed)
		}
		s.refuse("web", nil)
		s.pass(10 * time.Minute)
		s.wantWrites("web recorded")
		s.wantTold()
	})
}

// The opt-in is before the change, and is seen after it was decided for everybody else.
func TestAChangeAfterAnOptInThatIsSeenLateRestsOverALeader(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", reads("secret/db"))
		s.begin("secret/db")
		moment := s.reserve()
		s.settled("secret/db", "password", "two")
		s.at(moment, func() { s.edit("web", auto, onHold) })
		s.pass(11 * time.Minute)
		s.wantTold("web held on-hold")
		s.wantWrites("web recorded") // what it waits for
		// Somebody who removes all that is not in a manifest does not make it be forgotten.
		s.edit("web", without(annotationRecord))
		s.pass(time.Minute)
		s.wantWrites("web recorded")
		s.wantTold()
		for range 2 {
			s.restartFor(11 * time.Minute)
			s.wantWrites()
			s.told()
		}
		s.edit("web", letGo)
		s.settle()
		s.wantWrites("web rolled")
		s.wantRecord("web", "secret/db")
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.restartFor(time.Hour)
		s.wantNothing()
	})
}

func TestADeletionThatRestsOutlivesItsEventAndTheLeader(t *testing.T) {
	play(t, func(s *scene) {
		s.options.RollOnDelete = true
		first := s.beginReading("secret/db?")
		s.wantWrites("web recorded")
		s.edit("web", onHold)
		s.erase("secret/db")
		s.pass(11 * time.Minute)
		s.wantTold("web held on-hold")
		s.wantWrites("web recorded") // what it waits for
		first.stop()
		s.loseEvents("secret/db") // The stream drops the event of a deletion after a day.
		s.startFor(11 * time.Minute)
		s.wantWrites()
		s.told()
		s.edit("web", letGo)
		s.settle()
		s.wantWrites("web rolled")
		s.wantTold("web started deleted", "web completed rolled-out")
		if record := s.recordOf("web")["secret/db"]; !strings.Contains(record, ":deleted@") {
			s.Errorf("the record says %q, want that it was rolled because the source is gone", record)
		}
		s.restartFor(time.Hour)
		s.wantNothing()
	})
}
