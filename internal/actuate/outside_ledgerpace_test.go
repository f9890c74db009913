//go:build !race

package actuate_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
)

// A source may change all the time, and its last content is not missed.
func TestLedgerASourceThatFlipsEverySecondRollsAFewTimes(t *testing.T) {
	const most, soon = 7, 70 * time.Second
	play(t, func(s *scene) {
		s.beginWeb()
		s.soFar()
		const every = 990 * time.Millisecond // It is never quiet for as long as the debounce window.
		for i := range int(time.Minute / every) {
			s.set("secret/db", "password", []string{"two", "one"}[i%2])
			s.pass(every)
		}
		s.set("secret/db", "password", "three")
		changed := time.Now()
		s.pass(11 * time.Minute)
		rolls := slices.DeleteFunc(s.writesSince(&s.seen), func(w write) bool { return !w.rolls })
		if len(rolls) == 0 || len(rolls) > most {
			s.Fatalf("it is rolled %d times, want %d at most", len(rolls), most)
		}
		if took := rolls[len(rolls)-1].at.Sub(changed); took < 0 || took > soon {
			s.Errorf("the last roll is %s after the last change, want %s at most", took, soon)
		}
		s.wantRecord("web", "secret/db")
	})
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
		{name: "when it has stood still for long", broken: func(s *scene) { s.pass(5 * time.Minute) }},
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
		{name: "it waits", play: often},
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
			name: "a new leader begins anew", play: func(s *scene) { often(s); s.restart(); s.pass(10 * time.Second) }, rolls: []string{"web"},
		},
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
