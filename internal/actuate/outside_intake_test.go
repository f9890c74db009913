//go:build !race

package actuate_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAChangeThatNeedsNothingIsToldAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password"))
		s.begin("secret/db")
		s.wantWrites("web recorded")
		s.set("secret/db", "user", "two")
		s.pass(s.options.Settle / 2)
		s.wantTold("web skipped keys-not-consumed")
		s.pass(time.Hour)
		s.wantNothing()
	})
}

// A tenant creates and deletes one new name after the other, and a workload that reads all of them waits.
func TestNamesThatComeAndGoWhileAWorkloadWaitsAreForgotten(t *testing.T) {
	const count = 100
	play(t, func(s *scene) {
		s.workload("web", on("configmap/*, secret/db"), onHold, reads("secret/db"))
		s.startFor(time.Second)
		s.appear("configmap/stays")
		s.settle()
		s.wantTold("web held on-hold")
		var want []string
		for i := range count {
			name := fmt.Sprintf("configmap/churned-%d", i)
			s.appear(name)
			s.pass(time.Second)
			s.erase(name)
			s.pass(time.Second)
			want = append(want, "web skipped source-deleted")
		}
		s.wantTold(want...)
		s.wantWrites("web recorded") // that it waits for the one that stays
		s.edit("web", letGo)
		s.settle()
		s.wantRolls("web")
		s.wantTold("web started appeared", "web completed rolled-out")
		all := s.outcomesSoFar()
		var causes []string
		for _, cause := range all[len(all)-1].Sources {
			causes = append(causes, cause.Source)
		}
		if diff := cmp.Diff([]string{"configmap/stays"}, causes); diff != "" {
			s.Errorf("it was rolled for (-want +got):\n%s", diff)
		}
		// When the last source is gone, it has nothing to wait for.
		s.edit("web", onHold)
		s.appear("configmap/last")
		s.settle()
		s.wantTold("web held on-hold")
		s.erase("configmap/last")
		s.pass(time.Minute)
		s.wantTold("web skipped source-deleted")
		s.edit("web", letGo)
		s.pass(time.Hour)
		s.wantNothing()
	})
}

// The content comes back while the pods get the other one, and the record still says that they have it.
func TestNothingIsConcludedWhileAPatchIsUnderWay(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.patchesTake("web", 5*time.Second)
		s.settled("secret/db", "password", "two")
		s.set("secret/db", "password", "one")
		s.pass(time.Minute)
		s.wantRolls("web")
		s.wantRecord("web", "secret/db")
		s.restartFor(time.Minute)
		s.wantWrites()
	})
}

// deadLetters returns all dead letters.
func (s *scene) deadLetters() []events.DeadLetter {
	s.Helper()
	const most = 100
	letters, err := s.bus.DeadLetters(s.Context(), most)
	if err != nil {
		s.Fatal(err)
	}
	return letters
}

// garble publishes something on the subject of a source that is no event.
func (s *scene) garble(name string) {
	s.Helper()
	if _, err := s.jetStream().Publish(s.Context(), events.Subject("demo", sourceNamed(name)), []byte("no event")); err != nil {
		s.Fatal(err)
	}
}

// Each leader reads it, and each reading of the stream has it.
func TestAnEventThatCannotBeReadIsDeadLetteredOnce(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb()
		s.wantWrites("web recorded")
		s.garble("secret/db")
		s.pass(3 * time.Hour)
		s.restartFor(3 * time.Hour)
		letters := s.deadLetters()
		if len(letters) != 1 || letters[0].Subject != events.Subject("demo", sourceNamed("secret/db")) || letters[0].Reason == "" {
			s.Errorf("the dead letters are %+v, want one", letters)
		}
		if got, _ := seen.measurements().value("keyturn.events.rejected", "", ""); got != 1 {
			s.Errorf("%d are counted, want 1", got)
		}
		s.wantNothing()
		s.rotate("two", "web")
		s.garble("secret/db")
		s.pass(time.Minute)
		if got := len(s.deadLetters()); got != 2 {
			s.Errorf("after another one there are %d dead letters, want 2", got)
		}
	})
}

// A watch may show a write late, after the event of a later change was taken.
func TestAChangeIsNotMissedByAWorkloadThatHasJustComeToWantIt(t *testing.T) {
	tests := []struct {
		name          string
		before, write func(*scene)
	}{
		{"an annotation", func(s *scene) { s.workload("web", reads("secret/db")) }, func(s *scene) { s.edit("web", auto) }},
		{"a reference", func(s *scene) { s.workload("web", auto) }, func(s *scene) { s.edit("web", reads("secret/db")) }},
		{"the whole workload", func(*scene) {}, func(s *scene) { s.workload("web", auto, reads("secret/db")) }},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			test.before(s)
			s.workload("other", auto, reads("secret/db"))
			s.begin("secret/db")
			moment := s.reserve()
			s.rotate("two", "other")
			s.at(moment, func() { test.write(s) })
			s.pass(time.Minute)
			s.wantRolls("web")
			s.wantTold(
				"other started content-changed", "other completed rolled-out", "web started content-changed", "web completed rolled-out",
			)
			s.wantRecord("web", "secret/db")
			s.restartFor(time.Hour)
			s.wantNothing()
		})
	}
}

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
			s.wantTold("web skipped up-to-date")
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
			s.wantTold("web started content-changed", "web completed rolled-out")
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
