package testkit

import (
	"context"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit/running"
)

// Receive returns what comes from a channel, which is zero when it is closed, and fails the test if nothing comes within [Patience]. The
// details are those of [Eventually].
func Receive[T any](t testing.TB, what string, from <-chan T, details ...func() string) T {
	t.Helper()
	// What ends with a test is waited for when its context is done.
	ctx, stop := running.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer stop()
	var got T
	select {
	case got = <-from:
	case <-ctx.Done():
		giveUp(ctx, t, what, details)
	}
	return got
}
