//go:build !race

package actuate_test

import (
	"fmt"
	"testing"
	"time"
)

// Fingerprints under another key are not compared, and versions are.
func TestLedgerAnotherKeyOfFingerprintsRollsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.set("secret/db", "password", "two")
		s.rest()
		s.loseEvents()
		s.find("secret/db", map[string]string{"password": "two", "user": "app"}, underAnotherKey)
		s.pass(time.Minute)
		s.restartFor(11 * time.Minute)
		s.wantEnds(ends{})
	})
}

// A record says which keys it is about.
func TestLedgerAWorkloadThatComesToReadAnotherKeyHasIt(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password"))
		s.atRest("secret/db")
		s.set("secret/db", "user", "two")
		s.rest()
		s.edit("web", reads("secret/db#user"))
		s.rest()
		s.restartFor(11 * time.Minute)
		s.wantEnds(ends{})
	})
}

// A record has room for some of the sources that a pattern names.
func TestLedgerAPatternNamesMoreThanARecordHolds(t *testing.T) {
	const many = 250
	play(t, func(s *scene) {
		name := func(i int) string { return fmt.Sprintf("configmap/release-%03d", i) }
		s.options.LeaderElect = true
		s.workload("web", on("configmap/release-*"))
		s.start()
		for i := range many {
			s.find(name(i), map[string]string{"version": "one"})
		}
		s.pass(time.Minute)
		for i := range many {
			s.set(name(i), "version", "two")
		}
		s.rest()
		s.restartFor(11 * time.Minute)
		s.wantEnds(ends{quiet: true})
		s.running[0].stop()
		s.set(name(0), "version", "three") // It changed first, so it is not in the record.
		s.restartFor(11 * time.Minute)
		s.wantEnds(rolled("web"))
	})
}

// What the stream has lost is not known, and not gone.
func TestLedgerTheStreamIsEmptied(t *testing.T) {
	// emptied is a play: the stream loses everything after a workload was rolled for the second content of secret/db. Then something happens.
	emptied := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.options.RollOnDelete = true
			s.workload("web", auto, reads("secret/db", "configmap/app?"))
			s.begin("secret/db", "configmap/app")
			s.set("secret/db", "password", "two")
			s.rest()
			s.loseEvents()
			s.pass(time.Minute)
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	testFixtures(t, []fixture{
		{
			name: "and what the watcher publishes again rolls nothing", play: emptied(func(s *scene) { s.again("secret/db", "configmap/app") }),
			want: ends{quiet: true},
		},
		{name: "and a new leader does not take what is missing for deleted", play: emptied(func(s *scene) { s.restart() }), want: ends{quiet: true}},
		{
			name: "and a watcher that finds another content rolls for it, because the record has the one before",
			play: emptied(func(s *scene) { s.find("secret/db", map[string]string{"password": "three", "user": "app"}) }),
			want: rolled("web"),
		},
	})
}
