//go:build !race

package actuate_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/health"
)

func TestWhatIsHeldIsCountedAlthoughItIsLookedAtAgainAndAgain(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.options.MaxRollouts = 1
		s.readers("secret/db", "one", "another")
		s.begin("secret/db")
		s.wantRolls()
		s.stall("one", "another")
		s.settled("secret/db", "password", "two")
		for _, w := range s.writesSince(&s.seen) {
			s.fail(w.workload)
			s.pass(time.Minute)
			s.wantWrites(w.workload + " recorded") // That it has failed.
		}
		for range 3 {
			s.pass(5 * time.Second)
			if count, _ := seen.measurements().value("keyturn.workloads.held", "reason", "peer-failed"); count != 1 {
				s.Errorf("after %s, %d workloads are held, want 1", s.elapsed(), count)
			}
		}
	})
}

func TestTheProbeSeesTheLoopHang(t *testing.T) {
	play(t, func(s *scene) {
		var hangs atomic.Bool
		goesOn := make(chan struct{})
		s.options.Now = func() time.Time {
			if hangs.Load() {
				<-goesOn
			}
			return time.Now()
		}
		s.options.Progress = health.NewProgress(time.Now, time.Minute)
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.startFor(10 * time.Minute)
		if err := s.options.Progress.Check(); err != nil {
			s.Errorf("it waits for work, and the probe says %v", err)
		}
		hangs.Store(true)
		s.set("secret/db", "password", "two")
		s.pass(2 * time.Minute)
		if s.options.Progress.Check() == nil {
			s.Error("it hangs, and the probe does not say so")
		}
		hangs.Store(false)
		close(goesOn)
		s.pass(time.Minute)
		if err := s.options.Progress.Check(); err != nil {
			s.Errorf("it waits for work again, and the probe says %v", err)
		}
		s.wantRolls("web")
	})
}
