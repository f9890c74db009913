//go:build !race

package actuate_test

import (
	"fmt"
	"testing"
	"time"
)

// Fingerprints under another key are not compared, and versions are.
func TestLedgerTheKeyOfFingerprintsIsAnother(t *testing.T) {
	recorded := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.beginWeb()
			s.set("secret/db", "password", "two")
			s.rest()
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	same := map[string]string{"password": "two", "user": "app"}
	testFixtures(t, []fixture{
		{
			name: "a watcher that finds an empty stream rolls nothing with the next leader",
			play: recorded(func(s *scene) {
				s.loseEvents()
				s.find("secret/db", same, underAnotherKey)
				s.pass(time.Minute)
				s.restart()
			}),
		},
		{
			name: "a content that comes and goes within a second rolls once, because nobody sees that it is the same",
			play: recorded(func(s *scene) {
				s.set("secret/db", "password", "three")
				s.pass(100 * time.Millisecond)
				s.publish("secret/db", same, underAnotherKey)
			}),
			want: rolled("web"),
		},
	})
}

// A record says which keys it is about.
func TestLedgerAWorkloadComesToReadAnotherKey(t *testing.T) {
	reading := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.atRest("secret/db")
			s.set("secret/db", "user", "two")
			s.rest()
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	readsUser := reads("secret/db#user")
	testFixtures(t, []fixture{
		{
			name: "and its pods have that as it is, and the next leader knows it",
			play: reading(func(s *scene) {
				s.edit("web", readsUser)
				s.rest()
				s.restart()
			}),
		},
		{
			// One roll too many, in doubt.
			name: "while nobody leads, so that nobody knows when",
			play: reading(func(s *scene) {
				s.running[0].stop()
				s.pass(time.Minute)
				s.edit("web", readsUser)
				s.pass(time.Minute)
				s.restart()
			}),
			want: rolled("web"),
		},
	})
}

// A record has room for some of the sources that a pattern names.
func TestLedgerAPatternNamesMoreThanARecordHolds(t *testing.T) {
	// matching rolls a workload for all of many sources at once.
	const many = 250
	matching := func(name func(i int) string, happens func(*scene)) func(*scene) {
		return func(s *scene) {
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
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	short := func(i int) string { return fmt.Sprintf("configmap/release-%03d", i) }
	restarted := func(s *scene) { s.restart() }
	testFixtures(t, []fixture{
		{name: "in number, and a new leader rolls and writes nothing", play: matching(short, restarted), want: ends{quiet: true}},
		{
			name: "and rolls for one that it does not hold and that changed while nobody led",
			play: matching(short, func(s *scene) {
				s.running[0].stop()
				s.set(short(0), "version", "three")
				s.restart()
			}),
			want: rolled("web"),
		},
	})
}

// The paths of a store have a subject for each cluster whose watcher may watch it.
func TestLedgerTheWatchOfAStoreMovesToAnotherCluster(t *testing.T) {
	moved := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.options.StoresFrom = []string{"hub"}
			s.workload("web", on("openbao:secret/shop/db"))
			s.start()
			s.rotateInStore("demo", "secret/shop/db", 1)
			s.rest()
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	rotates := func(s *scene) { s.rotateInStore("hub", "secret/shop/db", 2) }
	testFixtures(t, []fixture{
		{name: "whose changes roll", play: moved(rotates), want: rolled("web")},
		{
			name: "whose changes roll although nobody led",
			play: moved(func(s *scene) {
				s.running[0].stop()
				s.pass(time.Minute)
				rotates(s)
				s.pass(time.Minute)
				s.restart()
			}),
			want: rolled("web"),
		},
	})
}

// rolledOnce is a play: a workload was rolled for the second content of secret/db. Then something happens.
func rolledOnce(happens func(*scene)) func(*scene) {
	return func(s *scene) {
		s.workload("web", auto, reads("secret/db", "configmap/app?"))
		s.begin("secret/db", "configmap/app")
		s.set("secret/db", "password", "two")
		s.rest()
		happens(s)
		s.pass(11 * time.Minute)
	}
}

// republished says that the watcher publishes the events that it knows once more.
func republished(s *scene) {
	s.again("secret/db", "configmap/app")
}

// What the stream has lost is not known, and not gone.
func TestLedgerTheStreamIsEmptied(t *testing.T) {
	emptied := func(happens func(*scene)) func(*scene) {
		return rolledOnce(func(s *scene) { s.loseEvents(); s.pass(time.Minute); happens(s) })
	}
	testFixtures(t, []fixture{
		{name: "and what the watcher publishes again rolls nothing", play: emptied(republished), want: ends{quiet: true}},
		{
			name: "and a new leader does not take what is missing for deleted",
			play: func(s *scene) {
				s.options.RollOnDelete = true
				emptied(func(s *scene) { s.restart() })(s)
			},
			want: ends{quiet: true},
		},
		{
			name: "and a watcher that finds another content rolls for it, because the record has the one before",
			play: emptied(func(s *scene) { s.find("secret/db", map[string]string{"password": "three", "user": "app"}) }),
			want: rolled("web"),
		},
		{
			name: "while a workload waits on hold", play: holding(func(s *scene) { s.loseEvents(); s.pass(time.Hour) }),
			want: rolled("web"),
		},
	})
}

// The volume is put back to what it was before a source was deleted and made again.
func TestLedgerTheStreamGoesBack(t *testing.T) {
	// back has the stream forget that secret/db was made again, with another content, and that web was rolled for that.
	back := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.atRest("secret/db", "secret/other")
			restore := s.backup()
			s.pass(time.Minute)
			s.erase("secret/db")
			s.pass(time.Minute)
			s.publish("secret/db", map[string]string{"password": "two", "user": "app"})
			s.pass(time.Minute)
			for _, user := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
				s.set("secret/other", "user", user)
			}
			s.rest()
			restore()
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	// published says that the watcher publishes its last event of secret/db after the one that the stream has.
	published := func(s *scene) {
		s.again("secret/db")
		s.pass(time.Minute)
	}
	testFixtures(t, []fixture{
		{
			// The outcomes of the roll are lost, too.
			name: "and the next leader rolls nothing", play: back(func(s *scene) { s.restart() }),
			want: ends{told: "web started up-to-date; web completed rolled-out"},
		},
		{
			name: "and the next leader rolls nothing for what the watcher publishes again",
			play: back(func(s *scene) { s.restart(); s.rest(); published(s) }),
		},
	})
}
