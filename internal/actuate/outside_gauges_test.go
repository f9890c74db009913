//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

func TestTheGaugesShowWhatTheActuatorHasOnItsHands(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.options.MaxRollouts, s.options.RolloutTimeout = 3, 24*time.Hour
		s.workload("failing", auto, reads("secret/broken"))
		s.workload("after", auto, reads("secret/broken"), inWave(1))
		s.workload("busy", auto, reads("secret/busy"))
		s.workload("busy-too", auto, reads("secret/busy"))
		s.workload("one", auto, reads("secret/late"))
		s.workload("two", auto, reads("secret/late"))
		s.workload("held", auto, reads("secret/held"), onHold)
		s.workload("office/refused", auto, reads("secret/refused"))
		s.workload("statefulset/idle", auto, reads("secret/idle"))
		s.begin("secret/broken", "secret/busy", "secret/late", "secret/held", "office/secret/refused", "secret/idle")
		for _, name := range []string{"failing", "busy", "busy-too"} {
			s.stall(name)
		}
		s.refuse("office/refused", deniedByAdmission())
		s.set("office/secret/refused", "password", "two")
		s.set("secret/broken", "password", "two")
		s.settle()
		s.fail("failing")
		s.pass(10 * time.Second)
		s.set("secret/busy", "password", "two")
		s.settle()
		s.set("secret/late", "password", "two") // There is a third slot, but not for this namespace.
		s.set("secret/held", "password", "two")
		s.pass(time.Hour)
		s.wantRolls("busy", "busy-too", "failing")

		measured := seen.measurements()
		for _, tt := range []struct {
			name, key, label string
			want             int64
		}{
			{"keyturn.dry.run", "", "", 0},
			{"keyturn.leader", "", "", 1},
			{"keyturn.workloads", "kind", "deployment", 8},
			{"keyturn.workloads", "kind", "statefulset", 1},
			{"keyturn.workloads", "kind", "cronjob", 0},
			{"keyturn.sources.behind", "", "", 0},
			{"keyturn.workloads.pending", "", "", 5},
			{"keyturn.workloads.refused", "kind", "deployment", 1},
			{"keyturn.workloads.refused", "kind", "statefulset", 0},
			{"keyturn.workloads.held", "reason", "on-hold", 1},
			{"keyturn.workloads.held", "reason", "namespace-limit-reached", 2},
			{"keyturn.workloads.held", "reason", "peer-failed", 1},
			{"keyturn.workloads.held", "reason", "lower-wave", 0},
			{"keyturn.workloads.held.oldest", "reason", "lower-wave", 0},
			{"keyturn.rollouts.active", "kind", "deployment", 2},
			{"keyturn.rollouts.active", "kind", "statefulset", 0},
			{"keyturn.rollouts.failing", "kind", "deployment", 1},
			{"keyturn.rollouts.failing", "kind", "statefulset", 0},
		} {
			if got, ok := measured.value(tt.name, tt.key, tt.label); !ok || got != tt.want {
				s.Errorf("%s{%s}: got %d, there: %t, want %d", tt.name, tt.label, got, ok, tt.want)
			}
		}
		// The gauges are a few seconds old.
		if got, _ := measured.value("keyturn.workloads.held.oldest", "reason", "on-hold"); got < 3590 || got > 3600 {
			s.Errorf("what is on hold has waited for %d s, want an hour", got)
		}
	})
}

func TestOnlyAWaitThatNobodyHasChosenCountsAsOwed(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web", auto, reads("secret/db"), onHold)
		s.begin("secret/db")
		wantOwed := func(least, most time.Duration) {
			s.Helper()
			got, ok := seen.measurements().value("keyturn.workloads.owed.oldest", "", "")
			if waited := time.Duration(got) * time.Second; !ok || waited < least || waited > most {
				s.Errorf("after %s, a workload has waited for %s, there: %t, want %s to %s", s.elapsed(), waited, ok, least, most)
			}
		}
		wantOwed(0, 0)
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		wantOwed(0, 0)
		s.refuse("web", unavailable())
		s.edit("web", letGo)
		s.pass(10 * time.Minute)
		wantOwed(10*time.Minute-10*time.Second, 10*time.Minute)
		s.set("secret/db", "password", "three") // It is owed for as long.
		s.pass(10 * time.Minute)
		wantOwed(20*time.Minute-10*time.Second, 20*time.Minute)
		s.refuse("web", nil)
		s.pass(2 * time.Minute)
		s.wantRolls("web")
		wantOwed(0, 0)
	})
}

func TestAnActuatorThatStandsByShowsNothingOfTheWork(t *testing.T) {
	play(t, func(s *scene) {
		ofTheWork := []string{"keyturn.workloads.pending", "keyturn.rollouts.active"}
		s.options.LeaderElect = true
		s.workload("web", auto, reads("secret/db"), onHold)
		first := s.begin("secret/db")
		s.set("secret/db", "password", "two")
		seen := s.instrument()
		s.start()
		s.pass(time.Minute)
		measured := seen.measurements()
		if got, ok := measured.value("keyturn.leader", "", ""); !ok || got != 0 {
			s.Errorf("keyturn.leader is %d, there: %t, want 0", got, ok)
		}
		if got, ok := measured.value("keyturn.workloads", "kind", "deployment"); !ok || got != 1 {
			s.Errorf("keyturn.workloads is %d, there: %t, want 1", got, ok)
		}
		for _, name := range ofTheWork {
			if _, ok := measured[name]; ok {
				s.Errorf("there is %s", name)
			}
		}

		first.stop()
		s.pass(time.Minute)
		measured = seen.measurements()
		if got, _ := measured.value("keyturn.leader", "", ""); got != 1 {
			s.Errorf("keyturn.leader of the next leader is %d, want 1", got)
		}
		for _, name := range ofTheWork {
			if _, ok := measured[name]; !ok {
				s.Errorf("the next leader does not show %s", name)
			}
		}
	})
}

func TestTheNextActuatorKnowsWhenTheChangesOfARolloutWereSeen(t *testing.T) {
	const took = 9 * time.Minute
	for _, tt := range []struct {
		name  string
		later func(s *scene)
		// knows says that the next actuator measures how long the change took.
		knows bool
	}{
		{"the last event of the source", func(*scene) {}, true},
		{"not an earlier one", func(s *scene) { s.set("secret/db", "user", "another") }, false},
		{"not of a source that is gone", func(s *scene) { s.erase("secret/db") }, false},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			first := s.begin("secret/db")
			s.stall("web")
			s.rotate("two", "web")
			first.stop()
			tt.later(s)
			seen := s.instrument()
			s.start()
			s.pass(took - s.options.Settle - 100*time.Millisecond)
			s.finish("web")
			s.pass(time.Second)
			s.wantRolls()

			count, sum := seen.spent("keyturn.change.ready.duration")
			switch {
			case !tt.knows && count != 0:
				s.Errorf("%d changes were measured, %g s together, want none", count, sum)
			case tt.knows && (count != 1 || sum < took.Seconds() || sum > took.Seconds()+1):
				s.Errorf("%d changes were measured, %g s together, want one of %s", count, sum, took)
			}
		})
	}
}
