//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// An alert fires if pods are ready later than five minutes after a change, which is as long as the default bake.
func TestTheWaitForACanaryIsNoTimeThatAChangeTook(t *testing.T) {
	trial(t, func(s *scene) {
		seen := s.instrument()
		for _, name := range []string{"a", "b"} {
			s.workload(name, auto, reads("secret/db"))
		}
		s.workload("c", auto, inWave(1), reads("secret/db"))
		s.begin("secret/db")
		s.stall("a", "b", "c")
		s.set("secret/db", "password", "two")
		s.pass(30 * time.Second)
		s.finish("a")
		s.pass(bakeTime + bakeCheck)
		s.wantRolls("a", "b")
		s.pass(20 * time.Second)
		s.finish("b")
		s.pass(10 * time.Second)
		s.wantRolls("c")
		s.finish("c")
		s.pass(time.Second)
		// The time that c waits for the lower wave counts, which is 20 seconds and up to bakeCheck.
		if count, sum := seen.spent("keyturn.change.patch.duration"); count != 3 || sum < 20 || sum > 20+20 {
			s.Errorf("%d patches took %v s, want 3 and 20 s, or somewhat more", count, sum)
		}
		if count, sum := seen.spent("keyturn.change.ready.duration"); count != 3 || sum < 30+20+30 || sum > 30+20+30+40 {
			s.Errorf("the pods of %d workloads took %v s to be ready, want 3 and 80 s, or somewhat more", count, sum)
		}
	})
}

// TestWhoseWaitIsChosen has workloads wait for ten minutes or more.
func TestWhoseWaitIsChosen(t *testing.T) {
	reading := func(s *scene) {
		s.workload("peer", auto, reads("secret/db"))
		s.workload("web", auto, inWave(1), reads("secret/db"))
	}
	tests := []struct {
		name string
		// workloads makes them and sets the options, and wait is what happens after the change.
		workloads, wait func(s *scene)
		// chosen says that people have chosen the wait, so that it does not count.
		chosen bool
	}{
		{
			"its window is closed",
			func(s *scene) {
				s.workload("web", auto, annotated(workload.AnnotationWindow, "30 0 * * * for 1h"), reads("secret/db"))
			},
			func(s *scene) { s.pass(35 * time.Minute) }, true,
		},
		{
			"a workload goes first with each change",
			func(s *scene) {
				s.options.Canary = true
				reading(s)
			},
			func(s *scene) {
				s.pass(10 * time.Minute)
				s.finish("peer")
				s.pass(bakeTime)
			}, true,
		},
		{
			"a workload goes first after a repair",
			func(s *scene) {
				s.workload("failed", auto, inWave(-1), reads("secret/db"))
				s.readers("secret/db", "peer", "web")
			},
			func(s *scene) {
				s.settle()
				s.fail("failed")
				s.pass(time.Second)
				s.repair("failed")
				s.pass(10 * time.Minute)
				s.finish("peer")
				s.finish("web")
			}, false,
		},
		{
			"a lower wave goes first", reading,
			func(s *scene) {
				s.pass(10 * time.Minute)
				s.finish("peer")
			}, false,
		},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			seen := s.instrument()
			tt.workloads(s)
			s.begin("secret/db")
			s.stall("failed", "peer", "web")
			s.set("secret/db", "password", "two")
			tt.wait(s)
			s.pass(time.Minute)
			if count, sum := seen.spent("keyturn.change.patch.duration"); count == 0 || (sum < 60) != tt.chosen {
				s.Errorf("%d patches took %v s; chosen is the wait: %t", count, sum, tt.chosen)
			}
		})
	}
}
