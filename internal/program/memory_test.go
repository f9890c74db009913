package program

import (
	"context"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTrimmer(t *testing.T) {
	const much, little = 2 * trimBusy, trimBusy / 4
	for _, tt := range []struct {
		name string
		// allocates is how much is allocated before each check.
		allocates []uint64
		// trims and forgets are how often memory is returned, and the code alone.
		trims, forgets int32
	}{
		{name: "a busy program releases its code only", allocates: []uint64{much, much, much}, forgets: 3},
		{name: "a program that has become quiet is trimmed", allocates: []uint64{much, little}, trims: 1, forgets: 1},
		{name: "and again after twice the time each time", allocates: []uint64{much, 0, 0, 0, 0, 0, 0, 0, 0, 0}, trims: 4, forgets: 1},
		{
			name: "after a long time every 32 times", trims: 8, forgets: 1,
			allocates: append([]uint64{much}, slices.Repeat([]uint64{little}, 3*trimLongest)...),
		},
		{name: "but not if nothing was allocated", allocates: append([]uint64{much}, make([]uint64, 3*trimLongest)...), trims: 6, forgets: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var total atomic.Uint64
				var trims, forgets atomic.Int32
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go trimmer{allocated: total.Load, giveBack: func() { trims.Add(1) }, forget: func() { forgets.Add(1) }}.run(ctx)
				synctest.Wait()
				for _, bytes := range tt.allocates {
					total.Add(bytes)
					<-time.After(trimEvery)
					synctest.Wait()
				}
				if trims, forgets := trims.Load(), forgets.Load(); trims != tt.trims || forgets != tt.forgets {
					t.Errorf("trimmed %d times, and released the code %d times, want %d and %d", trims, forgets, tt.trims, tt.forgets)
				}
			})
		})
	}
}

func TestAHeapGrowsByAShareOfWhatIsInUseAndToTheSmallOneInAnyCase(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name               string
		live, roots, small uint64
		want               int
	}{
		{name: "next to nothing is in use", live: 1 * mib, small: 24 * mib, want: 575},
		{name: "a third of a small heap is", live: 8 * mib, small: 24 * mib, want: 200},
		{name: "stacks grow the heap, too", live: 8 * mib, roots: 2 * mib, small: 24 * mib, want: 160},
		{name: "a large heap is", live: 200 * mib, small: 24 * mib, want: growth},
		{name: "no heap is small", live: 8 * mib, small: 0, want: growth},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := growthOf(tt.live, tt.roots, tt.small); got != tt.want {
				t.Errorf("by %d%% of %d bytes, want %d%%", got, tt.live, tt.want)
			}
		})
	}
}

func TestAfterCollectionCallsAfterEachOneUntilTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	afterCollection(ctx, func() { calls.Add(1) })
	for range 3 {
		before := calls.Load()
		goruntime.GC()
		// The next canary is made after the call, by the same cleanup.
		testkit.Eventually(t, "it is called, and its cleanup has ended", func() bool {
			return calls.Load() > before && total("/gc/cleanups/executed:cleanups") == total("/gc/cleanups/queued:cleanups")
		})
	}
	cancel()
	before := calls.Load()
	for range 3 {
		goruntime.GC()
	}
	// A call that was in progress when the context ended may come after that.
	if after := calls.Load(); after > before+1 {
		t.Errorf("called %d times after the end", after-before)
	}
}
