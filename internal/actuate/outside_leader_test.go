//go:build !race

package actuate_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// startAs starts an actuator that has this name in the Lease.
func startAs(s *scene, identity string) *running {
	s.Helper()
	s.options.LeaderElect, s.options.Identity = true, identity
	return s.start()
}

// wantHolder wants somebody to hold the Lease of the actuators, nobody if it is empty.
func (s *scene) wantHolder(want string) {
	s.Helper()
	if got := s.holder(); got != want {
		s.Errorf("after %s, the Lease is held by %q, want %q", s.elapsed(), got, want)
	}
}

// wantSent wants a text to have been sent.
func (s *scene) wantSent(sent <-chan string, want string) {
	s.Helper()
	select {
	case got := <-sent:
		if got != want {
			s.Errorf("after %s, sent is %q, want %q", s.elapsed(), got, want)
		}
	default:
		s.Errorf("after %s, nothing is sent, want %q", s.elapsed(), want)
	}
}

func TestAnActuatorLeadsOnlyWhileItIsFit(t *testing.T) {
	play(t, func(s *scene) {
		var leads, cutOff [2]atomic.Bool
		start := func(i int, identity string) {
			s.options.Unfit = func() error {
				if cutOff[i].Load() {
					return errors.New("cut off")
				}
				return nil
			}
			s.options.WhileLeading = func(ctx context.Context, _ *bus.Bus) {
				if leads[1-i].Load() {
					s.Error("both lead")
				}
				leads[i].Store(true)
				<-ctx.Done()
				leads[i].Store(false)
			}
			startAs(s, identity)
		}
		want := func(why string, first, second bool, holder string) {
			s.Helper()
			s.pass(15 * time.Second)
			if leads[0].Load() != first || leads[1].Load() != second {
				s.Errorf("%s: leading are %t, %t, want %t, %t", why, leads[0].Load(), leads[1].Load(), first, second)
			}
			s.wantHolder(holder)
		}
		start(0, "one")
		want("there is one", true, false, "one")
		cutOff[1].Store(true)
		start(1, "two")
		want("there are two", true, false, "one")
		cutOff[0].Store(true)
		want("none is fit", false, false, "")
		cutOff[1].Store(false)
		want("one is fit again", false, true, "two")
		cutOff[0].Store(false)
		want("both are", false, true, "two")
	})
}

func TestALeaderThatCannotRenewTheLeaseStopsBeforeAnotherMayLead(t *testing.T) {
	play(t, func(s *scene) {
		held := make(chan string, 1)
		s.options.WhileLeading = func(ctx context.Context, _ *bus.Bus) {
			<-ctx.Done()
			held <- s.holder()
		}
		startAs(s, "one")
		s.pass(time.Second)
		var fails atomic.Bool
		s.intercept("update", "leases", func(action k8stesting.Action) (bool, runtime.Object, error) {
			update, ok := action.(k8stesting.UpdateActionImpl)
			if !ok || !fails.Load() {
				return false, nil, nil
			}
			lease, ok := update.GetObject().(*coordinationv1.Lease)
			renews := ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == "one"
			return renews, nil, apierrors.NewServerTimeout(coordinationv1.Resource("leases"), "update", 1)
		})
		s.options.WhileLeading = nil
		startAs(s, "two")
		s.pass(10 * time.Second)
		s.wantHolder("one")
		fails.Store(true)
		s.pass(6 * time.Second) // The Lease lasts for seven.
		s.wantSent(held, "one") // It leads no more, and has the Lease.
		s.pass(10 * time.Second)
		s.wantHolder("two")
	})
}

// The servers of a stream may be lost at the same time as the leader of the actuators.
func TestANewLeaderReadsTheLastOutcomesWhenTheStreamAnswers(t *testing.T) {
	play(t, func(s *scene) {
		s.options.LeaderElect = true
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		first := s.start()
		s.startFor(time.Minute)
		s.stall("web")
		s.rotate("two", "web")
		s.wantTold("web started content-changed")
		first.kill()
		s.nats.Stop()
		s.pass(45 * time.Second)
		if got := s.logged("cannot read the last outcomes; retrying"); got < 4 {
			s.Errorf("the next leader has asked %d times in vain, want several times", got)
		}
		s.nats.Start()
		s.pass(10 * time.Second)
		s.finish("web")
		s.pass(10 * time.Second)
		s.wantTold("web completed rolled-out")
		s.wantRolls()
	})
}

func TestWhatRunsWhileLeadingEndsBeforeAnotherCanLead(t *testing.T) {
	play(t, func(s *scene) {
		began, ended := make(chan string, 1), make(chan string, 1)
		s.options.WhileLeading = func(ctx context.Context, b *bus.Bus) {
			began <- b.Cluster()
			<-ctx.Done()
			<-time.After(20 * time.Second) // It takes longer than the Lease lasts.
			ended <- s.holder()
		}
		first := startAs(s, "one")
		s.options.WhileLeading = nil
		startAs(s, "two")
		s.pass(time.Second)
		s.wantSent(began, "demo")
		first.stop()
		s.wantSent(ended, "one") // The actuator has not ended before it.
		s.pass(5 * time.Second)
		s.wantHolder("two")
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
		s.options.Progress = telemetry.NewProgress(time.Now, time.Minute)
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
