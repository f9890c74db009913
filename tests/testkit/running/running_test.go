package running

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestATimeoutCountsTheTimeInWhichTheMachineRan(t *testing.T) {
	tests := []struct {
		name string
		// late is how late a tick comes, which is one of 1,200.
		late func(tick int) time.Duration
		took time.Duration
		want string
	}{
		{
			name: "on a machine that runs", late: func(int) time.Duration { return 0 },
			took: time.Minute, want: "timed out after 1m0s",
		},
		{
			name: "on a machine whose timers are a little late", late: func(int) time.Duration { return 100 * time.Microsecond },
			took: time.Minute + 120*time.Millisecond, want: "timed out after 1m0s",
		},
		{
			name: "on a machine that stands still once", late: func(tick int) time.Duration { return map[int]time.Duration{600: 12 * time.Second}[tick] },
			took: 72 * time.Second, want: "timed out after 1m0s and another 12s in which the machine stood still",
		},
		{
			name: "on a machine with too little time for everybody", late: func(int) time.Duration { return 2 * tick },
			took: 3 * time.Minute, want: "timed out after 1m0s and another 2m0s in which the machine stood still",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, ticks := time.Now(), 0
				ctx, stop := withTimeout(t.Context(), time.Minute, func(d time.Duration) <-chan time.Time {
					ticks++
					return time.After(d + tt.late(ticks))
				})
				defer stop()
				<-ctx.Done()
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
				if err := context.Cause(ctx); err.Error() != tt.want || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %q, want %q, which is a deadline", err, tt.want)
				}
			})
		})
	}
}
