package program

import (
	"context"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// growth is the percentage by which the heap may grow over its live bytes before a collection. Go's default is 100.
	growth = 35
	// leastLive is the minimum to count as live bytes and roots, so that the percentage has an upper bound.
	leastLive = 4 << 20
	// trimEvery is how often the trimmer checks whether the program is quiet.
	trimEvery = 15 * time.Second
	// trimBusy is the minimum number of bytes that a busy program allocates between two checks.
	trimBusy = 8 << 20
	// trimLongest is the maximum number of checks between two returns of memory, if at least trimWorth bytes were allocated in between.
	trimLongest = 32
	trimWorth   = 8 << 20
)

// keepSmall keeps the memory of the process close to its need, until ctx is done. The programs are idle most of the time, and Go's collector, which
// runs on allocation, would let them keep the garbage of a first list or a burst for minutes. So the heap may grow less before a collection. When the
// program has become quiet, free memory is returned to the system, together with code pages that were needed only at the start.
//
// A heap of less than small bytes is not collected: in a burst, a program with few live bytes would otherwise collect several times a
// second, for a few megabytes each time, on a core that the API server may need.
//
// GOGC and GOMEMLIMIT keep their meaning. If GOGC is set, keepSmall does not change the growth.
func keepSmall(ctx context.Context, small uint64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
		afterCollection(ctx, func() { debug.SetGCPercent(growthOf(total(liveBytes), total(stackBytes)+total(globalBytes), small)) })
	}
	trimmer{allocated: func() uint64 { return total(allocatedBytes) }, giveBack: giveBack, forget: forgetCode}.run(ctx)
}

// growthOf returns the percentage by which a heap with the given live bytes may grow. The collector takes it of the live bytes and of the roots,
// which are stacks and global variables.
func growthOf(live, roots, small uint64) int {
	if live >= small {
		return growth
	}
	return max(growth, int((small-live)*100/max(live+roots, leastLive)))
}

// afterCollection calls f after each garbage collection, until ctx is done. Each collection finds an unreferenced canary, whose cleanup
// calls f and makes the next one.
func afterCollection(ctx context.Context, f func()) {
	type canary struct{ _ *canary }
	goruntime.AddCleanup(new(canary), func(ctx context.Context) {
		if ctx.Err() == nil {
			f()
			afterCollection(ctx, f)
		}
	}, ctx)
}

// trimmer returns memory to the system when the program has become quiet: at once, and then at intervals that double, because buffers are released
// bit by bit. (NATS releases its buffers after 10 seconds, and its table of duplicates after minutes.) The interval does not grow beyond 8 minutes,
// and memory is then returned only if enough was allocated: each check of the claim on the cluster's name makes NATS read a block of 4 MB.
//
// While the program is busy, it releases its code: what a burst needs is back at once, and what only the first lists needed stays away.
type trimmer struct {
	// allocated returns how many bytes have been allocated so far, including freed ones.
	allocated        func() uint64
	giveBack, forget func()
}

func (t trimmer) run(ctx context.Context) {
	var last, trimmed uint64
	quiet := 0
	for kube.Sleep(ctx, trimEvery) {
		now := t.allocated()
		quiet++
		if now-last >= trimBusy {
			quiet = 0
			t.forget()
		}
		last = now
		if isTrim(quiet, now-trimmed) {
			t.giveBack()
			trimmed = now
		}
	}
}

// isTrim reports whether memory is returned after this many quiet checks: after 1, 2, 4, 8, 16 and 32, and then after every 32 if at least
// trimWorth bytes were allocated since the last time.
func isTrim(quiet int, allocated uint64) bool {
	if quiet > trimLongest {
		return quiet%trimLongest == 0 && allocated >= trimWorth
	}
	return quiet > 0 && quiet&(quiet-1) == 0
}

// Sizes of the heap and of its roots, by their names in runtime/metrics.
const (
	allocatedBytes = "/gc/heap/allocs:bytes"
	// The others are results of the last collection.
	liveBytes   = "/gc/heap/live:bytes"
	stackBytes  = "/gc/scan/stack:bytes"
	globalBytes = "/gc/scan/globals:bytes"
)

func total(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func giveBack() {
	// The content of a sync.Pool, such as NATS's buffers of 8 MiB, survives one collection; FreeOSMemory runs the second.
	goruntime.GC()
	debug.FreeOSMemory()
	forgetCode()
}

// forgetCode drops the code. A failure costs memory only.
func forgetCode() { _ = dropCode() }
