//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

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
			name: "and what the watcher publishes after that rolls nothing with a new leader",
			play: emptied(func(s *scene) { s.restart(); s.pass(time.Minute); republished(s) }),
			want: ends{quiet: true},
		},
		{
			name: "and a watcher that knows nothing either rolls nothing",
			play: emptied(func(s *scene) { s.find("secret/db", map[string]string{"password": "two", "user": "app"}) }), want: ends{quiet: true},
		},
		{
			name: "and a watcher that finds another content rolls for it, because the record has the one before",
			play: emptied(func(s *scene) { s.find("secret/db", map[string]string{"password": "three", "user": "app"}) }),
			want: rolled("web"),
		},
		{
			name: "and the next change rolls",
			play: emptied(func(s *scene) { republished(s); s.rest(); s.set("secret/db", "password", "three") }),
			want: rolled("web"),
		},
		{
			name: "of one event, and a new leader rolls and writes nothing",
			play: rolledOnce(func(s *scene) { s.loseEvents("secret/db"); s.restart() }), want: ends{quiet: true},
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
		{name: "and nothing rolls", play: back(func(*scene) {})},
		{name: "and nothing rolls for what the watcher publishes again", play: back(published)},
		{
			// The outcomes of the roll are lost, too.
			name: "and the next leader rolls nothing", play: back(func(s *scene) { s.restart() }),
			want: ends{told: "web started already-rolled; web completed rolled-out"},
		},
		{
			name: "and the next leader rolls nothing for what the watcher publishes again",
			play: back(func(s *scene) { s.restart(); s.rest(); published(s) }),
		},
		{
			name: "and the next change rolls",
			play: back(func(s *scene) { published(s); s.soFar(); s.set("secret/db", "password", "three") }),
			want: rolled("web"),
		},
	})
}

// Nobody hears from NATS while the leader changes.
func TestLedgerNATSIsSilent(t *testing.T) {
	silent := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.options.LeaderElect = true
			s.workload("web", auto, reads("secret/db"))
			s.observe("secret/db")
			first := s.start()
			s.start()
			s.rest()
			happens(s)
			s.nats.Stop()
			first.kill()
			s.pass(5 * time.Minute)
			s.nats.Start()
			s.pass(11 * time.Minute)
		}
	}
	testFixtures(t, []fixture{
		{name: "for five minutes, and then nothing happens", play: silent(func(*scene) {}), want: ends{quiet: true}},
		{
			name: "for five minutes from a change on, and then that rolls once",
			play: silent(func(s *scene) { s.set("secret/db", "password", "two"); s.pass(500 * time.Millisecond) }), want: rolled("web"),
		},
		{
			name: "for five minutes while a workload waits on hold, and then it rolls once people let it",
			play: func(s *scene) {
				silent(func(s *scene) {
					s.edit("web", onHold)
					s.set("secret/db", "password", "two")
					s.rest()
				})(s)
				s.soFar()
				s.edit("web", letGo)
				s.pass(time.Minute)
			},
			want: rolled("web"),
		},
		{
			name: "for five minutes while a rollout is in progress, and then its end is told",
			play: func(s *scene) {
				silent(func(s *scene) {
					s.stall("web")
					s.set("secret/db", "password", "two")
					s.pass(time.Minute)
					s.soFar()
				})(s)
				s.finish("web")
				s.pass(time.Minute)
			},
			want: ends{told: "web completed rolled-out"},
		},
	})
}
