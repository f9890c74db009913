package events

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestOnReconnect(t *testing.T) {
	s := startServer(t)
	nc := s.connect()
	b, err := Open(t.Context(), nc, testCluster, nil)
	must(t, err)
	var calls atomic.Int64
	run := func(ctx context.Context) error {
		b.OnReconnect(ctx, func() { calls.Add(1) })
		return nil
	}
	stop := testkit.Run(t, "listener", run)
	restarts := uint64(0)
	testkit.Eventually(t, "it was called", func() bool {
		if calls.Load() == 0 && nc.Stats().Reconnects >= restarts { // It may not have listened yet.
			s.restart(func() {})
			restarts++
		}
		return calls.Load() > 0
	})
	before := calls.Load()
	s.restart(func() {})
	testkit.Eventually(t, "it was called again", func() bool { return calls.Load() > before })
	stop()

	testkit.Run(t, "listener of a connection that is closed", func(context.Context) error { return run(context.WithoutCancel(t.Context())) })
	nc.Close()
}

func TestWhatIsSilenceIsWorthRepeating(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, false},
		{"the time of a request is over", context.DeadlineExceeded, true},
		{"nobody answers a request", nats.ErrTimeout, true},
		{"messages of a reading are lost", errLost, true},
		{"nobody answers an outcome", jetstream.ErrAsyncPublishTimeout, true},
		{"a server runs, and not JetStream", nats.ErrNoResponders, true},
		{"JetStream is not ready", &jetstream.APIError{Code: 503, ErrorCode: jetstream.JSErrCodeJetStreamNotEnabled}, true},
		{"the servers have no leader", &jetstream.APIError{Code: 503, ErrorCode: errCodeNoClusterLeader}, true},
		{"another answer", &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}, false},
		{"the caller has ended", context.Canceled, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.err
			if err != nil {
				err = errors.Join(nil, fmt.Errorf("publishing: %w", err)) // as the caller of PublishOutcomes has it
			}
			if got := IsSilence(err); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
