//go:build !race

package actuate_test

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestWhatRunsWhileLeadingEndsBeforeAnotherCanLead(t *testing.T) {
	play(t, func(s *scene) {
		began, ended := make(chan string, 1), make(chan string, 1)
		s.options.WhileLeading = func(ctx context.Context, bus *events.Bus) {
			began <- bus.Cluster()
			<-ctx.Done()
			<-time.After(20 * time.Second) // It takes longer than the Lease lasts.
			ended <- s.holder()
		}
		first := startAs(s, "one")
		s.options.WhileLeading = nil
		startAs(s, "two")
		s.pass(time.Second)
		select {
		case cluster := <-began:
			if cluster != "demo" {
				s.Errorf("it has the bus of the cluster %q", cluster)
			}
		default:
			s.Fatal("it has not begun")
		}
		first.stop()
		select {
		case holder := <-ended:
			if holder != "one" {
				s.Errorf("when it ends, the Lease is held by %q", holder)
			}
		default:
			s.Error("the actuator has ended before it")
		}
		s.pass(5 * time.Second)
		if got := s.holder(); got != "two" {
			s.Errorf("after that, the Lease is held by %q, want the other one", got)
		}
	})
}
