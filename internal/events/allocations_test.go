package events

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// A message is made for each change and for each outcome of one, and the actuator reads each change. The numbers are those with the race detector,
// which adds a few.
func TestAMessageCostsNoMoreAllocationsThanBefore(t *testing.T) {
	c, o, bus := untraced(), outcome(), &Bus{cluster: testCluster}
	o.Trace = TraceContext{}
	msg, err := encoded(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		before float64
		does   func() error
	}{
		{"to write a change", 52, func() error { _, err := encoded(c); return err }},
		{"to read a change", 62, func() error { _, err := newStored(msg.Subject, 1, testTime, msg.Header, msg.Data).Change(); return err }},
		{"to write an outcome", 46, func() error { _, _, err := bus.message(o.Event, o.subject()); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := testing.AllocsPerRun(200, func() {
				if err := tt.does(); err != nil {
					t.Fatal(err)
				}
			})
			if got > tt.before*1.1 {
				t.Errorf("it costs %.0f allocations, a tenth more than %.0f", got, tt.before)
			}
		})
	}
}

// untraced is a change as it is without tracing.
func untraced() Change {
	c := change()
	c.Trace = TraceContext{}
	return c
}

func encoded(c Change) (*nats.Msg, error) {
	e, err := c.Event()
	if err != nil {
		return nil, err
	}
	return ToMsg(e, Subject(c.Cluster, c.Source))
}
