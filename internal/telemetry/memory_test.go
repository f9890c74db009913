package telemetry

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrimmer(t *testing.T) {
	const much, little = 2 * trimBusy, trimBusy / 4
	for _, tt := range []struct {
		name string
		// allocates is how much is allocated before each look.
		allocates []uint64
		want      int32
	}{
		{name: "a busy program is left alone", allocates: []uint64{much, much, much}, want: 0},
		{name: "a program that has become quiet is trimmed", allocates: []uint64{much, little}, want: 1},
		{name: "and again after twice the time each time", allocates: []uint64{much, 0, 0, 0, 0, 0, 0, 0, 0, 0}, want: 4},
		{name: "each burst is trimmed after it", allocates: []uint64{much, 0, much, much, little}, want: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var total atomic.Uint64
				var trims atomic.Int32
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go trimmer{allocated: total.Load, giveBack: func() { trims.Add(1) }}.run(ctx)
				synctest.Wait()
				for _, bytes := range tt.allocates {
					total.Add(bytes)
					<-time.After(trimEvery)
					synctest.Wait()
				}
				if got := trims.Load(); got != tt.want {
					t.Errorf("trimmed %d times, want %d", got, tt.want)
				}
			})
		})
	}
}

func TestKeepSmallEndsWithStop(t *testing.T) {
	t.Setenv("GOGC", "100") // the percentage of the other tests is theirs
	// That nothing is left running is for goleak to say.
	if err := KeepSmall()(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAllocatedGrows(t *testing.T) {
	before := allocated()
	taken := make([]byte, 4*trimBusy)
	if after := allocated(); after < before+uint64(len(taken)) {
		t.Errorf("allocated %d and then %d, want %d more", before, after, len(taken))
	}
}
