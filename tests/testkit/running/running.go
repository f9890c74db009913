// Package running bounds the waits of tests by the time in which the machine ran. So a machine that stands still, or has no processor left for a
// test, fails no test that another machine would pass: what the test waits for could not happen meanwhile either.
package running

import (
	"context"
	"fmt"
	"time"
)

// tick is the unit in which time is counted. It is long compared with how late a timer is while there is a processor for it.
const tick = 50 * time.Millisecond

// timeoutError is why a context of WithTimeout is done.
type timeoutError struct {
	limit time.Duration
	// late is what all ticks together were late.
	late time.Duration
}

func (e *timeoutError) Error() string {
	if e.late < time.Second {
		return "timed out after " + e.limit.String()
	}
	return fmt.Sprintf("timed out after %s and another %s in which the machine stood still", e.limit, e.late.Round(time.Second))
}

// Unwrap makes it an error like that of [context.WithTimeout].
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// WithTimeout is like [context.WithTimeout], but the context is done once the machine has run for the limit. Its [context.Cause] then also says how
// long the machine stood still, and is a [context.DeadlineExceeded]. The context has no deadline, and its Err is [context.Canceled]. Call stop once
// nothing waits any more. It may be called more than once.
//
// Each wait counts its own time, in a goroutine that ends with stop. One goroutine for the whole test binary would have to begin somewhere: begun
// inside a bubble of testing/synctest, it would belong to that bubble, and begun outside, goleak would find it. A loop that polls could count its own
// pauses, but not what passes during a request.
func WithTimeout(parent context.Context, limit time.Duration) (ctx context.Context, stop func()) {
	return withTimeout(parent, limit, time.After)
}

func withTimeout(parent context.Context, limit time.Duration, after func(time.Duration) <-chan time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		if !await(ctx.Done(), limit, after) {
			cancel(&timeoutError{limit: limit, late: time.Since(began) - limit})
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended
	}
}

// Await waits until done is closed or the machine has run for the limit, and reports whether done was closed.
func Await(done <-chan struct{}, limit time.Duration) bool { return await(done, limit, time.After) }

// await counts time in ticks, and a tick counts for as long as it should have taken, however late it comes. In a bubble, the ticks are those of the
// bubble's clock and never late, so that the limit is exact there.
func await(done <-chan struct{}, limit time.Duration, after func(time.Duration) <-chan time.Time) bool {
	for ran := time.Duration(0); ran < limit; ran += tick {
		select {
		case <-done:
			return true
		case <-after(min(tick, limit-ran)):
		}
	}
	return false
}
