//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestLedgerAPauseOverALeader(t *testing.T) {
	pausing := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.options.Reloader = true
			s.workload("web", auto, annotated("deployment.reloader.stakater.com/pause-period", "5m"), reads("secret/db"))
			s.observe("secret/db")
			s.start()
			s.rest()
			s.set("secret/db", "password", "two")
			s.pass(2 * time.Minute)
			s.soFar()
			happens(s)
		}
	}
	testFixtures(t, []fixture{
		{
			name: "the next leader ends it when the one before would have",
			play: pausing(func(s *scene) {
				s.restart()
				s.pass(2*time.Minute + 50*time.Second)
				s.wantRolls()
				s.pass(20 * time.Second)
			}),
			want: rolled("web"),
		},
		{
			name: "a content that comes and goes within it rolls nothing",
			play: pausing(func(s *scene) {
				s.set("secret/db", "password", "one")
				s.pass(11 * time.Minute)
			}),
			want: ends{told: "web skipped same-content"},
		},
	})
}

// Everything that people have chosen is on the workload, or told by the clock.
func TestLedgerAGateOverALeader(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "a workload in a window rolls when that opens, and is not told about twice",
			play: func(s *scene) {
				s.workload("web", auto, annotated(workload.AnnotationWindow, "0 2 * * * for 1h UTC"), reads("secret/db"))
				s.observe("secret/db")
				s.start()
				s.rest()
				s.set("secret/db", "password", "two")
				s.rest()
				s.restart()
				s.pass(time.Hour)
				s.wantRolls()
				s.wantTold()
				s.pass(time.Hour)
			},
			want: rolled("web"),
		},
		{
			name: "a workload waits for its interval once",
			play: func(s *scene) {
				s.workload("web", auto, annotated(workload.AnnotationMinInterval, "30m"), reads("secret/db"))
				s.observe("secret/db")
				s.start()
				s.rest()
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
		{
			name: "a workload that was rolled too often waits for the end of the hour once",
			play: func(s *scene) {
				s.workload("web", auto, annotated(workload.AnnotationMaxRollsPerHour, "2"), reads("secret/db"))
				s.observe("secret/db")
				s.start()
				s.rest()
				for _, password := range []string{"two", "three", "four"} {
					s.set("secret/db", "password", password)
					s.pass(time.Minute)
				}
				s.rest()
				s.restart()
				s.pass(40 * time.Minute)
				s.wantRolls()
				s.wantTold()
				s.pass(10 * time.Minute)
			},
			want: rolled("web"),
		},
		{
			name: "a count of rolls that a tool removes counts",
			play: func(s *scene) {
				s.workload("web", auto, annotated(workload.AnnotationMaxRollsPerHour, "2"), reads("secret/db"))
				s.observe("secret/db")
				s.start()
				s.rest()
				for _, password := range []string{"two", "three"} {
					s.set("secret/db", "password", password)
					s.pass(time.Minute)
				}
				s.soFar()
				s.writeAs("argocd-controller", "web", without("keyturn.dev/rolls"))
				s.pass(time.Minute)
				s.set("secret/db", "password", "four")
				s.pass(11 * time.Minute)
			},
			want: ends{told: "web held rolled-too-often"},
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
				s.observe(secrets...)
				s.start()
				s.rest()
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
