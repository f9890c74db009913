//go:build !race

package actuate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

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
		s.workload("web", auto, reads("secret/db?"))
		first := s.begin("secret/db")
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

func TestWhatAWorkloadWaitsForIsNotedAsFarAsTheRecordHasRoom(t *testing.T) {
	const count, room = 250, 200
	play(t, func(s *scene) {
		s.options.RollOnDelete = true
		s.workload("web", on("configmap/release-*"), onHold)
		var names []string
		for i := range count {
			names = append(names, fmt.Sprintf("configmap/release-%d", i))
		}
		s.begin(names...)
		s.wantWrites("web recorded") // what they have
		for _, name := range names {
			s.erase(name)
		}
		s.pass(11 * time.Minute)
		s.wantWrites("web recorded") // Once, however often it is looked at.
		noted := 0
		for _, entry := range s.recordOf("web") {
			if strings.Contains(entry, ":owed-for-deletion@") {
				noted++
			}
		}
		if noted != room {
			s.Errorf("%d of %d deletions are noted, want %d", noted, count, room)
		}
		s.restartFor(11 * time.Minute)
		s.wantWrites()
		s.edit("web", letGo)
		s.pass(time.Minute)
		s.wantWrites("web rolled")
		s.restartFor(time.Hour)
		s.wantWrites()
	})
}
