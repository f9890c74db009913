//go:build !race

package actuate_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAChangeThatNeedsNothingIsToldOnceTheWorkloadIsQuiet(t *testing.T) {
	play(t, func(s *scene) {
		s.beginReading("secret/db#password")
		s.wantWrites("web recorded")
		for value := range 3 {
			s.set("secret/db", "user", strconv.Itoa(value))
			s.pass(s.options.Settle / 2)
		}
		s.wantTold()
		s.pass(s.options.Settle/2 + 100*time.Millisecond)
		s.wantTold("web skipped keys-not-consumed")
		s.pass(time.Hour)
		s.wantNothing()
	})
}

func TestAChangeThatNeedsNothingIsToldAtLastIfItNeverGetsQuiet(t *testing.T) {
	play(t, func(s *scene) {
		s.beginReading("secret/db#password")
		for value := range 25 {
			s.set("secret/db", "user", strconv.Itoa(value))
			s.pass(s.options.Settle / 2)
		}
		s.wantTold("web skipped keys-not-consumed")
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
		testkit.WantEqual(s, "it was rolled for", []string{"configmap/stays"}, causes)
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
	testkit.Must(s, err)
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
		seen.want("keyturn.events.rejected", "", "", 1)
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
	for _, test := range []struct {
		name          string
		before, write func(*scene)
	}{
		{"an annotation", func(s *scene) { s.workload("web", reads("secret/db")) }, func(s *scene) { s.edit("web", auto) }},
		{"the whole workload", func(*scene) {}, func(s *scene) { s.workload("web", auto, reads("secret/db")) }},
	} {
		playOf(t, test.name, func(s *scene) {
			test.before(s)
			s.begin("secret/db")
			moment := s.reserve()
			s.rotate("two")
			s.at(moment, func() { test.write(s) })
			s.pass(time.Minute)
			s.wantRolls("web")
			s.wantTold("web started content-changed", "web completed rolled-out")
			s.wantRecord("web", "secret/db")
			s.restartFor(time.Hour)
			s.wantNothing()
		})
	}
}
