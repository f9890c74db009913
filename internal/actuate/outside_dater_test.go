//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// A key changed, then workloads were created that read it, and then another key changed, while there was no actuator. The last event does not say
// when the first of the changes was made; the history does, if it still has that.
func TestAWorkloadCreatedAfterItsKeyChangedIsNotRolledForAnotherKey(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("old", auto, reads("secret/db#password"))
		s.observe("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.workload("web", auto, reads("secret/db#password"))
		s.workload("other", auto, reads("secret/db#password"))
		s.pass(time.Minute)
		s.set("secret/db", "user", "other")
		s.pass(time.Minute)
		s.start()
		s.pass(time.Minute)
		s.wantWrites("old rolled", "other recorded", "web recorded")
		s.wantTold(
			"old started content-changed", "old completed rolled-out", "other skipped pods-newer", "web skipped pods-newer",
		)
		s.pass(time.Hour)
		s.wantNothing()
	})
}

func TestAHistoryThatIsLostCostsARollAndNoMore(t *testing.T) {
	play(t, func(s *scene) {
		s.observe("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.workload("web", auto, reads("secret/db#password"))
		s.pass(time.Minute)
		s.set("secret/db", "user", "other")
		history, err := s.jetStream().Stream(s.Context(), events.StreamHistory)
		if err != nil {
			s.Fatal(err)
		}
		subject := events.HistorySubject(events.Subject("demo", sourceNamed("secret/db")))
		if err := history.Purge(s.Context(), jetstream.WithPurgeSubject(subject)); err != nil {
			s.Fatal(err)
		}
		s.start()
		s.pass(10 * time.Second)
		s.wantWrites("web rolled")
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.pass(time.Hour)
		s.wantNothing()
	})
}
