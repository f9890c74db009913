package telemetry

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// growth is by how much of what is in use the heap may grow before it is collected, in percent. Go's default is 100.
	growth = 35
	// leastLive is what is taken to be in use where less is, so that the percentage has an upper bound.
	leastLive = 4 << 20
	// trimEvery is how often it is looked whether the program is quiet.
	trimEvery = 15 * time.Second
	// trimBusy is how much a program allocates between two looks that is not quiet.
	trimBusy = 8 << 20
)

// KeepSmall keeps the program's memory near to what it needs, until stop is called. The programs are idle nearly always, and
// the collector of Go, which runs when something is allocated, would leave them for minutes with what a first list or a
// burst took. So the heap grows less before it is collected, and is trimmed whenever the program has become quiet; so is what
// of the program's code only the start needed.
//
// A heap of less than small bytes is not collected: that of a program which keeps little would be several times in a second of a
// burst, for a few megabytes each time, on whatever core is free, which the API server may be waiting for.
//
// GOGC and GOMEMLIMIT mean what they always mean. Where GOGC is set, the growth is left as it says.
func KeepSmall(small uint64) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
		afterCollection(ctx, func() { debug.SetGCPercent(growthOf(total(liveBytes), small)) })
	}
	var running sync.WaitGroup
	running.Go(func() {
		trimmer{allocated: func() uint64 { return total(allocatedBytes) }, giveBack: giveBack}.run(ctx)
	})
	return func(context.Context) error {
		cancel()
		running.Wait()
		return nil
	}
}

// growthOf is by how much a heap may grow of which so many bytes are in use, in percent.
func growthOf(live, small uint64) int {
	live = max(live, leastLive)
	if live >= small {
		return growth
	}
	return max(growth, int((small-live)*100/live))
}

// afterCollection calls f after each collection of garbage, until the context is done. What nothing refers to is found to be
// so by the next collection, which calls its cleanup.
func afterCollection(ctx context.Context, f func()) {
	type canary struct{ _ *canary }
	runtime.AddCleanup(new(canary), func(ctx context.Context) {
		if ctx.Err() == nil {
			f()
			afterCollection(ctx, f)
		}
	}, ctx)
}

// trimmer gives memory back when the program has become quiet: at once, and again after twice the time each time, for what was
// taken is let go of bit by bit. (NATS does so with its buffers after 10 seconds, and with what it knows duplicates by after
// minutes.)
type trimmer struct {
	// allocated is how many bytes have been allocated so far, freed ones included.
	allocated func() uint64
	giveBack  func()
}

func (t trimmer) run(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	var last uint64
	for quiet := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := t.allocated()
		quiet++
		if now-last >= trimBusy {
			quiet = 0
		}
		last = now
		if quiet > 0 && quiet&(quiet-1) == 0 { // 1, 2, 4, 8...
			t.giveBack()
		}
	}
}

// The totals of the heap, by their names in runtime/metrics.
const (
	allocatedBytes = "/gc/heap/allocs:bytes"
	// liveBytes are what the last collection found to be in use.
	liveBytes = "/gc/heap/live:bytes"
)

func total(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func giveBack() {
	// What is in a sync.Pool, such as NATS's buffers of 8 MiB, outlives one collection; FreeOSMemory makes the second.
	runtime.GC()
	debug.FreeOSMemory()
	// Where it cannot be done, nothing is lost but room.
	_ = forgetCode()
}
