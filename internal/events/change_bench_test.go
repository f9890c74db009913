package events

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// BenchmarkEncode makes the message of a change, and BenchmarkDecode reads it as the actuator does.
func BenchmarkEncode(b *testing.B) {
	c := untraced()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encoded(c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	msg, err := encoded(untraced())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := decode(msg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodeOutcome makes the message of an outcome.
func BenchmarkEncodeOutcome(b *testing.B) {
	bus, o := &Bus{cluster: testCluster}, outcome()
	o.Trace = TraceContext{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bus.outcomeMsg(o); err != nil {
			b.Fatal(err)
		}
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

func decode(msg *nats.Msg) error {
	d := &Delivery{subject: msg.Subject, header: msg.Header, data: msg.Data}
	return d.parseChange(testCluster)
}
