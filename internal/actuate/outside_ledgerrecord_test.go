//go:build !race

package actuate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
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
			name: "a later change rolls",
			play: recorded(func(s *scene) {
				s.publish("secret/db", map[string]string{"password": "three", "user": "app"}, underAnotherKey)
			}),
			want: rolled("web"),
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
		{
			name: "and is rolled when that changes",
			play: reading(func(s *scene) {
				s.edit("web", readsUser)
				s.pass(time.Minute)
				s.set("secret/db", "user", "three")
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
	long := func(i int) string { return fmt.Sprintf("configmap/release-%s%03d", strings.Repeat("a.", 100), i) }
	restarted := func(s *scene) { s.restart() }
	testFixtures(t, []fixture{
		{name: "in number, and a new leader rolls and writes nothing", play: matching(short, restarted), want: ends{quiet: true}},
		{name: "in size, and a new leader rolls and writes nothing", play: matching(long, restarted), want: ends{quiet: true}},
		{
			name: "and rolls for one that it does not hold",
			play: matching(short, func(s *scene) {
				s.restartFor(time.Minute)
				s.set(short(0), "version", "three")
			}),
			want: rolled("web"),
		},
		{
			name: "and rolls for one that it does not hold and that changed while nobody led",
			play: matching(short, func(s *scene) {
				s.running[0].stop()
				s.set(short(0), "version", "three")
				s.restart()
			}),
			want: rolled("web"),
		},
		{
			name: "and somebody has written a record that is too large to be one",
			play: func(s *scene) {
				s.beginWeb()
				s.set("secret/db", "password", "two")
				s.rest()
				entry := workload.RolledFor{Fingerprint: "k0a1b2c3d:00000000000000000000000000000000", Version: "1", UID: "uid"}.String()
				record := make(map[string]string)
				for i := range 2001 {
					record[short(i)] = entry
				}
				text, err := json.Marshal(record)
				if err != nil {
					s.Fatal(err)
				}
				s.writeAs("person", "web", annotated("keyturn.dev/rolled", string(text)))
				s.pass(11 * time.Minute)
				s.restartFor(11 * time.Minute)
			},
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
			name: "and a new leader rolls and writes nothing",
			play: moved(func(s *scene) { rotates(s); s.rest(); s.restart() }), want: ends{quiet: true},
		},
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
