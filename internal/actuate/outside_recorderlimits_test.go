//go:build !race

package actuate_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAWorkloadWhoseSourceIsCreatedLateGetsARecordSoonAfter(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.startFor(5 * time.Hour) // By then, it is looked for every few hours.
		s.wantNothing()
		s.observe("secret/db")
		s.pass(2 * time.Minute)
		s.wantWrites("web recorded")
		s.wantRecord("web", "secret/db")
		s.wantTold()
	})
}

func TestEventsWithoutAChangeWriteNothingWhileAnotherSourceHasNoEvent(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", on("auto, configmap/app"), reads("secret/db"))
		s.begin("secret/db")
		s.wantWrites("web recorded")
		for range 20 {
			s.mark("secret/db")
			s.pass(time.Minute)
		}
		s.wantNothing()
		s.observe("configmap/app")
		s.pass(2 * time.Minute)
		s.wantWrites("web recorded")
		if record := s.recordOf("web"); len(record) != 2 {
			s.Errorf("the record is %v, want an entry of each source", record)
		}
	})
}

func TestAnOutcomeThatCannotBeReadKeepsNoRecordBack(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		subject := events.OutcomeSubject("demo", events.Workload{Kind: "deployment", Namespace: namespace, Name: "web"})
		if _, err := s.jetStream().Publish(s.Context(), subject, []byte("of a later version")); err != nil {
			s.Fatal(err)
		}
		s.startFor(time.Minute)
		s.wantWrites("web recorded")
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

func TestAWorkloadThatIsAnnotatedAgainAndAgainGetsARecordOnceAMinute(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.wantWrites("web recorded")
		s.pass(2 * time.Second) // so that it is never written at the moment at which the actuator looks at it
		const every, long = 5 * time.Second, 10 * time.Minute
		for i := range int(long / every) {
			s.edit("web", without(annotationRecord), on("auto, configmap/app-"+strconv.Itoa(i)))
			s.pass(every)
		}
		if got := len(s.writesSince(&s.seen)); got < 8 || got > 13 {
			s.Errorf("%d records are written in ten minutes, want about one a minute", got)
		}
		s.wantTold()
	})
}

func TestARecordThatFailsOnceIsWrittenSoonAfterManyThatDidNotFail(t *testing.T) {
	play(t, func(s *scene) {
		sources := []string{"secret/db"}
		for i := range 10 {
			sources = append(sources, "configmap/app-"+strconv.Itoa(i))
		}
		s.workload("web", auto, reads("secret/db"))
		s.begin(sources...)
		s.wantWrites("web recorded")
		last := len(sources) - 1
		for i := 1; i < last; i++ {
			s.edit("web", on("auto, "+strings.Join(sources[1:i+1], ", ")))
			s.pass(2 * time.Minute)
			s.wantWrites("web recorded")
		}
		s.refuse("web", unavailable())
		s.edit("web", on("auto, "+strings.Join(sources[1:], ", ")))
		s.pass(time.Minute)
		s.refuse("web", nil)
		s.pass(10 * time.Minute)
		s.wantWrites("web recorded")
		if record := s.recordOf("web"); len(record) != len(sources) {
			s.Errorf("the record is %v, want an entry of each source", record)
		}
	})
}
