//go:build !race

package actuate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// People have chosen for hundreds of workloads that they wait, and then everything is restarted at once.
func TestLedgerManyThatWaitForPeopleOutliveARestartOfEverything(t *testing.T) {
	held, windowed := namesOf("held", 250), namesOf("windowed", 250)
	play(t, func(s *scene) {
		for _, name := range held {
			s.workload(name, auto, onHold, reads("secret/db"))
		}
		for _, name := range windowed {
			s.workload(name, auto, annotated(workload.AnnotationWindow, "0 1 * * * for 1h UTC"), reads("secret/db"))
		}
		leader := s.begin("secret/db")
		s.rest()
		s.set("secret/db", "password", "two")
		s.rest()
		s.nats.Stop()
		leader.kill()
		s.pass(time.Minute)
		s.nats.Start()
		s.start()
		s.pass(11 * time.Minute)
		s.wantWrites()
		s.wantTold()
		s.wantNotices()
		for _, name := range held {
			s.edit(name, letGo)
		}
		s.pass(time.Minute)
		s.wantWrites(each(held, " rolled")...)
		s.passUntil(midnight.Add(time.Hour - time.Second))
		s.wantWrites()
		s.pass(3*time.Minute + 10*time.Second) // Each has its own moment within the first three minutes of the window.
		s.wantWrites(each(windowed, " rolled")...)
		for _, name := range slices.Concat(held, windowed) {
			s.wantRecord(name, "secret/db")
		}
	})
}

// each returns names with what becomes of them.
func each(names []string, becomes string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = name + becomes
	}
	return all
}
