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
	behind := func(s *scene, reading string, web ...aspect) {
		s.Helper()
		s.workload("other", auto, reads(reading))
		s.workload("web", append(web, auto, reads("secret/db"))...)
		s.begin("secret/db", "secret/other")
		s.stall("other")
		s.set(reading, "password", "two")
		s.pass(10 * time.Second)
		s.wantRolls("other")
	}
	alone := func(s *scene, web ...aspect) {
		s.Helper()
		s.workload("web", append(web, auto, reads("secret/db"))...)
		s.begin("secret/db")
	}
	otherIsReady := func(s *scene) { s.finish("other") }
	tests := []struct {
		name string
		// begins lets web begin to wait, and over ends the wait, nil if it ends by itself soon.
		begins, over func(*scene)
	}{
		{
			name: "for the end of its debounce window",
			begins: func(s *scene) {
				alone(s)
				dbChanges(s)
				s.pass(500 * time.Millisecond)
			},
		},
		{
			name: "for a slot",
			begins: func(s *scene) {
				s.options.MaxRollouts, s.options.RolloutTimeout = 1, time.Hour
				behind(s, "secret/other")
				dbChanges(s)
				s.pass(10 * time.Second)
			},
			over: otherIsReady,
		},
		{name: "for a lower wave", begins: func(s *scene) { behind(s, "secret/db", inWave(1)) }, over: otherIsReady},
		{
			name: "for the end of a hold",
			begins: func(s *scene) {
				alone(s, onHold)
				dbChanges(s)
				s.pass(10 * time.Second)
			},
			over: func(s *scene) { s.edit("web", letGo) },
		},
		{
			name: "for Reloader",
			begins: func(s *scene) {
				s.options.Reloader = true
				s.workload("peer", auto, reads("secret/other"))
				alone(s)
				s.reloaderRolls("peer", "secret/other")
				dbChanges(s)
				s.pass(2 * time.Second)
			},
		},
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
		{
			name: "when its controller has given up",
			broken: func(s *scene) {
				s.fail("web")
				s.pass(time.Minute)
			},
		},
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
		{name: "Reloader's mode", options: func(o *actuate.Options) { o.Reloader = true }, play: often, rolls: []string{"web"}},
		{
			name: "a higher wave waits for it",
			play: func(s *scene) {
				s.workload("api", auto, inWave(1), reads("secret/db"), onHold)
				often(s)
				s.edit("api", letGo)
				s.pass(10 * time.Second)
			},
		},
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
