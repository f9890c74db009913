package events

import (
	"context"
	"sync/atomic"
	"testing"

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
