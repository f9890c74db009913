//go:build !race

package actuate_test

import (
	"testing"
	"time"
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
			name: "for another attempt",
			begins: func(s *scene) {
				alone(s)
				s.refuse("web", unavailable())
				dbChanges(s)
				s.pass(10 * time.Second)
			},
			over: func(s *scene) { s.refuse("web", nil) },
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
			name: "for the one that goes first",
			begins: func(s *scene) {
				s.options.Canary = true
				behind(s, "secret/db")
			},
			over: otherIsReady,
		},
		{
			name: "for the repair of another one",
			begins: func(s *scene) {
				behind(s, "secret/db", inWave(1))
				s.fail("other")
				s.pass(10 * time.Second)
			},
			over: otherIsReady,
		},
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
