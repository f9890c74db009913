//go:build !race

package actuate_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestALaterEventTakesThePlaceOfTheOneBefore(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollouts = 1
		s.workload("busy", auto, reads("configmap/app"))
		s.workload("web", auto, reads("secret/db"))
		s.begin("configmap/app", "secret/db")
		s.stall("busy")
		s.settled("configmap/app", "mode", "fast")
		s.wantRolls("busy")
		for i := range 200 {
			s.set("secret/db", "password", strconv.Itoa(i))
			s.pass(2 * time.Second)
		}
		s.wantWrites()
		s.wantTold("busy started content-changed", "web held limit-reached")
		s.finish("busy")
		s.pass(time.Minute)
		s.wantWrites("web rolled")
		s.wantRecord("web", "secret/db")
		s.wantTold("busy completed rolled-out", "web started content-changed", "web completed rolled-out")
		s.restartFor(time.Hour)
		s.wantNothing()
	})
}

// A pod that starts while the workload waits has content that the record does not name, and keeps it when the old content is back.
func TestContentThatComesBackWhileAWorkloadWaitsRollsIt(t *testing.T) {
	tests := []struct {
		name string
		back func(*scene)
	}{
		{"by a change", func(s *scene) { s.set("secret/db", "password", "one") }},
		{
			"when the source is made anew",
			func(s *scene) {
				s.erase("secret/db")
				s.pass(time.Second)
				s.appear("secret/db")
			},
		},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			s.beginWeb()
			s.wantWrites("web recorded")
			// Before any pod can have started, it does not.
			s.set("secret/db", "password", "two")
			s.pass(100 * time.Millisecond)
			s.set("secret/db", "password", "one")
			s.pass(time.Minute)
			s.wantWrites("web recorded") // that this is decided
			s.wantTold("web skipped same-content")
			s.edit("web", onHold)
			s.set("secret/db", "password", "two")
			s.pass(time.Minute)
			test.back(s)
			s.pass(time.Minute)
			s.wantWrites()
			s.wantTold("web held on-hold")
			s.edit("web", letGo)
			s.settle()
			s.wantWrites("web rolled")
			s.wantRecord("web", "secret/db")
			s.wantTold("web started changed-meanwhile", "web completed rolled-out")
		})
	}
}

// Another watcher of the cluster may be behind.
func TestAnEventOfAnEarlierVersionRollsNothingBack(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		earlier := s.nextVersion()
		s.rotate("two", "web")
		s.wantTold("web started content-changed", "web completed rolled-out")
		record := s.recordOf("web")["secret/db"]
		s.set("secret/db", "password", "between", func(change *events.Change) {
			change.ResourceVersion, change.ChangedAt = earlier, earlier
		})
		s.pass(time.Hour)
		s.wantNothing()
		if got := s.recordOf("web")["secret/db"]; got != record {
			s.Errorf("its record is %q, want %q", got, record)
		}
	})
}

// Running pods keep the content of a source that is gone.
func TestAnEventThatComesAfterADeletionRollsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.rotate("two", "web")
		earlier := s.of("secret/db").published
		s.erase("secret/db")
		s.pass(time.Minute)
		s.send(earlier) // by another watcher, which is behind
		s.pass(time.Hour)
		s.wantWrites()
		s.wantTold("web started content-changed", "web completed rolled-out", "web skipped source-deleted")
	})
}

// A stream that was lost begins again at the first sequence.
func TestAnEventOfANewStreamTakesThePlaceOfOneBefore(t *testing.T) {
	tests := []struct {
		name   string
		change func(*scene)
	}{
		{"of the same object", func(s *scene) { s.set("secret/db", "password", "new") }},
		{
			"of an object that was made anew",
			func(s *scene) {
				s.erase("secret/db")
				s.set("secret/db", "password", "new")
			},
		},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			s.workload("web", auto, onHold, reads("secret/db"))
			s.begin("secret/db")
			for i := range 10 {
				s.set("secret/db", "password", strconv.Itoa(i))
				s.pass(time.Second)
			}
			s.wantRolls()
			s.remakeStream()
			s.again("secret/db")
			test.change(s)
			s.pass(time.Minute)
			s.wantWrites()
			s.wantTold("web held on-hold")
			s.edit("web", letGo)
			s.settle()
			s.wantWrites("web rolled")
			s.wantRecord("web", "secret/db")
			s.wantTold("web started content-changed", "web completed rolled-out")
		})
	}
}
