package actuate

import (
	"context"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWhatRunsWhileLeadingEndsBeforeAnotherCanLead(t *testing.T) {
	c := newCluster(t)
	began, ended := make(chan *events.Bus, 1), make(chan bool, 1)
	options := c.options()
	var a *Actuator
	ready := make(chan struct{})
	options.WhileLeading = func(ctx context.Context, bus *events.Bus) {
		began <- bus
		<-ctx.Done()
		<-ready
		ended <- a.leading.Load()
	}
	a, stop := c.start(options)
	close(ready)
	if bus := testkit.Receive(t, "the call", began); bus != c.bus {
		t.Error("it has another bus")
	}
	stop()
	select {
	case leading := <-ended:
		if !leading {
			t.Error("its context ended after the actuator had ceased to lead")
		}
	default:
		t.Error("the actuator has ended before it")
	}
}
