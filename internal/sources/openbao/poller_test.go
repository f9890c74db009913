package openbao

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
)

func TestPoller_PollsAtItsIntervalAndSoonAfterARequest(t *testing.T) {
	m, err := newMetrics(metricnoop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		p := &poller{
			store: "main", interval: time.Minute, requests: newPollRequests(), status: newStatus(slog.New(slog.DiscardHandler)), metrics: m, now: time.Now,
			sweep: func(context.Context) bool { polls++; return true },
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.run(ctx) }()
		want := func(n int) {
			t.Helper()
			if polls != n {
				t.Errorf("polled %d times, want %d", polls, n)
			}
		}
		after(50 * time.Second)
		want(1)
		after(20 * time.Second)
		want(2)
		p.requests.ask()
		after(time.Second)
		want(3)
		if err := p.status.unpolled(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		cancel()
		<-ended
	})
}
