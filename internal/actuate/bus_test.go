package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// busOf returns a bus of the tests' cluster on streams that the test has for itself.
func busOf(t *testing.T) *events.Bus {
	t.Helper()
	return natstest.Buses(t, testOptions().Cluster)[0]
}

// mustPublish publishes a change and returns its sequence. Expected is the sequence of the event before.
func mustPublish(t *testing.T, bus *events.Bus, change events.Change, expected uint64) (seq uint64) {
	t.Helper()
	natstest.Publish(t, func() (err error) {
		seq, err = bus.PublishChange(t.Context(), change, expected)
		return err
	})
	return seq
}

func outcomeOf(name string) events.Outcome {
	return events.Outcome{
		Cluster: "demo", Verb: events.VerbFailed, ResourceVersion: "50", Time: written, Cause: "uid/100", Reason: "timed-out",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: name, UID: "uid-" + name},
	}
}
