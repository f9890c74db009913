//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// What waits may be no difference between a content and a record.
func TestLedgerWhatIsNoChangeOfContentWaitsOnTheWorkload(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "a deletion that a workload on hold waits for counts once the source is back, because pods that started meanwhile lack it",
			play: func(s *scene) {
				s.options.RollOnDelete = true
				s.workload("web", auto, onHold, reads("configmap/app?"))
				s.atRest("configmap/app")
				s.erase("configmap/app")
				s.pass(time.Minute)
				s.appear("configmap/app")
				s.rest()
				s.restartFor(time.Minute)
				s.soFar()
				s.edit("web", letGo)
				s.pass(11 * time.Minute)
			},
			want: ends{rolls: "web", told: "web started appeared; web completed rolled-out"},
		},
		{
			name: "an appearance that a workload on hold waits for outlives the leader",
			play: func(s *scene) {
				s.workload("web", auto, onHold, reads("configmap/app?"))
				s.startFor(time.Minute)
				s.appear("configmap/app")
				s.rest()
				s.restartFor(time.Minute)
				s.soFar()
				s.edit("web", letGo)
				s.pass(time.Minute)
			},
			want: ends{rolls: "web", told: "web started appeared; web completed rolled-out"},
		},
	})
}

// holding is a play: a workload on hold waits for a change. Then something happens, and the hold ends.
func holding(happens func(*scene)) func(*scene) {
	return func(s *scene) {
		s.workload("web", auto, onHold, reads("secret/db"))
		s.atRest("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		happens(s)
		s.soFar()
		s.edit("web", letGo)
		s.pass(time.Minute)
	}
}

// Somebody removes the record of a workload that waits.
func TestLedgerAToolDropsTheRecordOfAWorkloadThatWaits(t *testing.T) {
	drop := func(s *scene) { s.writeAs("kubectl-replace", "web", withoutOurs) }
	testFixtures(t, []fixture{
		{name: "it still waits", play: holding(func(s *scene) { drop(s); s.pass(time.Hour) }), want: rolled("web")},
		{
			name: "it still waits with the next leader if the tool does so every few minutes",
			play: holding(func(s *scene) {
				for range 20 {
					drop(s)
					s.pass(3 * time.Minute)
				}
				s.restartFor(3 * time.Minute)
			}),
			want: rolled("web"),
		},
		{
			name: "a workload that does not wait is recorded again, and rolls for nothing",
			play: func(s *scene) {
				s.beginWeb()
				s.set("secret/db", "password", "two")
				s.rest()
				for range 5 {
					drop(s)
					s.pass(3 * time.Minute)
				}
				s.restartFor(11 * time.Minute)
			},
		},
	})
}

// A content comes and goes while a workload waits, and pods that start in between have it.
func TestLedgerAContentThatCameAndWentRollsWithTheNextLeader(t *testing.T) {
	play(t, func(s *scene) {
		holding(func(s *scene) {
			s.set("secret/db", "password", "one")
			s.pass(time.Minute)
			s.restartFor(time.Minute)
		})(s)
		s.wantEnds(ends{rolls: "web", told: "web started changed-meanwhile; web completed rolled-out"})
	})
}

// What changed while a source was ignored is to be forgotten.
func TestLedgerAnIgnoredSourceChanges(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "nothing rolls for that once a person puts it on hold and ends that",
			play: func(s *scene) {
				s.beginWeb()
				s.mark("secret/db", asIgnored)
				s.set("secret/db", "password", "two", asIgnored)
				s.rest()
				s.mark("secret/db", sourceHeld("moving"))
				s.pass(time.Minute)
				s.mark("secret/db")
				s.pass(11 * time.Minute)
			},
			want: ends{told: "web skipped keys-not-consumed; web skipped keys-not-consumed"},
		},
		{
			name: "what a workload waits for is forgotten with the next leader, too",
			play: holding(func(s *scene) { s.mark("secret/db", asIgnored); s.pass(time.Minute); s.restart(); s.pass(time.Minute) }),
		},
	})
}
