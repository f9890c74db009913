//go:build !race

package actuate_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
)

// Whatever web waits for, it is rolled once, when that is over, by whoever leads then.
func TestLedgerALeaderChangesInTheMiddleOfAWait(t *testing.T) {
	// behind has another workload be rolled for a change of what it reads. Its new pods do not become ready.
	behind := func(s *scene, reads string, web ...aspect) {
		s.Helper()
		s.readers(reads, "other")
		s.observe("secret/other")
		s.beginWeb(web...)
		s.stall("other")
		s.set(reads, "password", "two")
		s.pass(10 * time.Second)
		s.wantRolls("other")
	}
	otherIsReady, endHold := func(s *scene) { s.finish("other") }, func(s *scene) { s.edit("web", letGo) }
	tests := []struct {
		name string
		// begins is what there is when secret/db changes, and the leader changes so long after that; if that is zero, it has changed already. Over
		// ends the wait, nil if it ends by itself soon.
		begins, over func(*scene)
		after        time.Duration
	}{
		{name: "for the end of its debounce window", begins: func(s *scene) { s.beginWeb() }, after: 500 * time.Millisecond},
		{name: "for a slot", over: otherIsReady, after: 10 * time.Second, begins: func(s *scene) {
			s.options.MaxRollouts, s.options.RolloutTimeout = 1, time.Hour
			behind(s, "secret/other")
		}},
		{name: "for a lower wave", over: otherIsReady, begins: func(s *scene) { behind(s, "secret/db", inWave(1)) }},
		{name: "for the end of a hold", after: 10 * time.Second, begins: func(s *scene) { s.beginWeb(onHold) }, over: endHold},
		{name: "for Reloader", after: 2 * time.Second, begins: func(s *scene) {
			s.options.Reloader.On = true
			s.readers("secret/other", "peer")
			s.observe("secret/other")
			s.beginWeb()
			s.reloaderRolls("peer", "secret/other")
		}},
	}
	leaders := []struct {
		name   string
		change func(*scene)
	}{
		{"the leader ends", func(s *scene) { s.restart() }},
		{"the leader is killed", func(s *scene) {
			s.running[0].kill()
			s.start()
		}},
	}
	for _, tt := range tests {
		for _, leader := range leaders {
			playOf(t, tt.name+", and "+leader.name, func(s *scene) {
				tt.begins(s)
				if tt.after > 0 {
					dbChanges(s)
					s.pass(tt.after)
				}
				s.wantRolls()
				leader.change(s)
				s.pass(3 * time.Minute)
				if tt.over != nil {
					s.wantRolls()
					tt.over(s)
					s.pass(bakeTime + 2*time.Minute)
				}
				s.wantRolls("web")
				s.wantRecord("web", "secret/db")
				s.restartFor(11 * time.Minute)
				s.wantRolls()
			})
		}
	}
}

// A fix is not delayed by what was rolled before.
func TestLedgerAFixDuringABrokenRolloutRollsSoon(t *testing.T) {
	const soon = 12 * time.Second
	tests := []struct {
		name    string
		options func(*actuate.Options)
		// broken is what happens between the roll that breaks web and the fix.
		broken func(*scene)
	}{
		{name: "a moment after it has begun", broken: func(s *scene) { s.pass(3 * time.Second) }},
		{name: "when its controller has given up", broken: func(s *scene) {
			s.fail("web")
			s.pass(time.Minute)
		}},
		{
			name: "when it has timed out, and there is no other slot", options: func(o *actuate.Options) { o.MaxRollouts = 1 },
			broken: func(s *scene) { s.pass(20 * time.Minute) },
		},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			if tt.options != nil {
				tt.options(&s.options)
			}
			s.beginWeb()
			for i := range 6 { // so that it would have to wait longest
				s.set("secret/db", "password", strconv.Itoa(i))
				s.pass(10 * time.Second)
			}
			s.stall("web")
			s.set("secret/db", "password", "broken")
			s.pass(2 * time.Minute)
			s.settled("secret/db", "user", "broken")
			s.soFar()
			tt.broken(s)
			s.wantRolls()
			s.loosen("web")
			s.set("secret/db", "password", "fixed")
			s.pass(soon)
			s.wantRolls("web")
			s.wantRecord("web", "secret/db")
		})
	}
}

// What people decide is not delayed by what was rolled before, and neither are others.
func TestLedgerWhatDoesNotWaitForTheDistance(t *testing.T) {
	// often has web wait a minute for its next roll.
	often := func(s *scene) {
		for i := range 8 {
			s.set("secret/db", "password", strconv.Itoa(i))
			s.pass(9 * time.Second)
		}
		s.pass(time.Minute)
		s.soFar()
		s.set("secret/db", "password", "last but one")
		s.pass(10 * time.Second)
		s.soFar()
		s.set("secret/db", "password", "last")
		s.pass(10 * time.Second)
	}
	tests := []struct {
		name    string
		options func(*actuate.Options)
		play    func(*scene)
		rolls   []string
	}{
		{name: "and is rolled after a minute", play: func(s *scene) { often(s); s.pass(time.Minute) }, rolls: []string{"web"}},
		{
			name:  "somebody asks for the roll",
			play:  func(s *scene) { often(s); s.edit("web", annotated("keyturn.dev/roll-now", "1")); s.pass(0) },
			rolls: []string{"web"},
		},
		{
			name:  "it was on hold",
			play:  func(s *scene) { often(s); s.edit("web", onHold); s.pass(time.Second); s.edit("web", letGo); s.pass(0) },
			rolls: []string{"web"},
		},
		{name: "Reloader's mode", options: func(o *actuate.Options) { o.Reloader.On = true }, play: often, rolls: []string{"web"}},
		{name: "a higher wave waits for it", play: func(s *scene) {
			s.workload("api", auto, inWave(1), reads("secret/db"), onHold)
			often(s)
			s.edit("api", letGo)
			s.pass(10 * time.Second)
		}},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			if tt.options != nil {
				tt.options(&s.options)
			}
			s.options.MaxRollsPerHour = 0
			s.beginWeb()
			tt.play(s)
			s.wantRolls(tt.rolls...)
		})
	}
}
