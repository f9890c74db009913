//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// Everything that people have chosen is on the workload, or told by the clock.
func TestLedgerAGateOverALeader(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "a workload waits for its interval once",
			play: func(s *scene) {
				s.workload("web", auto, annotated(workload.AnnotationMinInterval, "30m"), reads("secret/db"))
				s.atRest("secret/db")
				s.set("secret/db", "password", "two")
				s.pass(time.Minute)
				s.set("secret/db", "password", "three")
				s.rest()
				s.restart()
				s.pass(15 * time.Minute)
				s.wantRolls()
				s.wantTold()
				s.pass(10 * time.Minute)
			},
			want: rolled("web"),
		},
	})
}

// The changes of one workload come one after the other.
func TestLedgerManyChangesOfOneWorkload(t *testing.T) {
	var secrets []string
	for _, month := range []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"} {
		secrets = append(secrets, "secret/"+month)
	}
	testFixtures(t, []fixture{
		{
			name: "twelve rotations two seconds apart",
			play: func(s *scene) {
				s.workload("web", auto, reads(secrets...))
				s.atRest(secrets...)
				for _, name := range secrets {
					s.set(name, "password", "two")
					s.pass(2 * time.Second)
				}
				s.pass(11 * time.Minute)
				for _, name := range secrets {
					s.wantRecord("web", name)
				}
			},
			want: rolledTimes(5),
		},
	})
}
