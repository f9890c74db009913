package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// replying is a server that answers a question about a stream as the test says.
type replying struct {
	jetstream.JetStream

	err error
}

func (a *replying) Stream(context.Context, string) (jetstream.Stream, error) { return nil, a.err }

func TestAServerIsLostWhenItHasNotAnsweredForSomeSeconds(t *testing.T) {
	server := &replying{err: jetstream.ErrStreamNotFound}
	m := NewMajority(server)
	now := time.Now()
	m.now = func() time.Time { return now }
	for _, step := range []struct {
		name  string
		after time.Duration
		err   error
		lost  bool
	}{
		{"it answers", 0, jetstream.ErrStreamNotFound, false},
		{"it is silent for the first time", time.Second, context.DeadlineExceeded, false},
		{"it is still silent", mostSilent - time.Second, context.DeadlineExceeded, false},
		{"it has no leader", time.Second, errors.New("jetstream system temporarily unavailable"), true},
		{"it answers again", time.Second, jetstream.ErrStreamNotFound, false},
		{"it is silent again", time.Hour, context.DeadlineExceeded, false},
	} {
		now, server.err = now.Add(step.after), step.err
		m.ask(t.Context())
		if err := m.Lost(); (err != nil) != step.lost {
			t.Errorf("%s: got %v, want an error: %t", step.name, err, step.lost)
		}
	}
}
