package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit/running"
)

// Patience is how long a test waits for something that must happen. Test machines are slow at times. The time in which the machine stands still does
// not count, see [running.WithTimeout].
const Patience = time.Minute

// attempt is how long one poll may take. A NATS server that restarts leaves some requests without an answer, so a poll that waited for one until
// the end would never repeat it.
const attempt = Patience / 2

// longestPause is how long a test waits for its next poll, at most.
const longestPause = time.Second

// Eventually polls until a condition holds, and fails the test if it does not hold within [Patience]. The failure message names the
// condition and ends with what each detail returns, such as a log.
func Eventually(t testing.TB, what string, condition func() bool, details ...func() string) {
	t.Helper()
	await(t, 5*time.Millisecond, what, func(context.Context) bool { return condition() }, details...)
}

// Await is like [Eventually], for a condition that sends requests to a server: it polls less often, and a poll that has no answer ends and
// is repeated. What reads a stream must not poll more often: each reading leaves a consumer for a minute, and a NATS server allows 1,000
// for each stream.
func Await(t testing.TB, what string, condition func(context.Context) bool, details ...func() string) {
	t.Helper()
	await(t, 50*time.Millisecond, what, condition, details...)
}

func await(t testing.TB, every time.Duration, what string, condition func(context.Context) bool, details ...func() string) {
	t.Helper()
	ctx, stop := running.WithTimeout(t.Context(), Patience)
	defer stop()
	holds := func() bool {
		ctx, cancel := context.WithTimeout(ctx, attempt)
		defer cancel()
		return condition(ctx)
	}
	for {
		began := time.Now()
		if holds() {
			return
		}
		// A poll that takes long, of hundreds of objects or on a busy machine, is not to take most of the time of what it waits for.
		pause := max(every, min(4*time.Since(began), longestPause))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			giveUp(ctx, t, what, details)
		}
	}
}

// giveUp fails a test with what it waited for in vain, and why it waits no longer.
func giveUp(ctx context.Context, t testing.TB, what string, details []func() string) {
	t.Helper()
	for _, detail := range details {
		t.Log(detail())
	}
	t.Fatalf("%v, still waiting for: %s", context.Cause(ctx), what)
}
