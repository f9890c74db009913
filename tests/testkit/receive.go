package testkit

import (
	"testing"
	"time"
)

// Receive returns what comes from a channel, which is zero when it is closed, and fails the test if nothing comes within [Patience]. The
// details are those of [Eventually].
func Receive[T any](t testing.TB, what string, from <-chan T, details ...func() string) T {
	t.Helper()
	var got T
	select {
	case got = <-from:
	case <-time.After(Patience):
		for _, detail := range details {
			t.Log(detail())
		}
		t.Fatalf("timed out after %s, still waiting for: %s", Patience, what)
	}
	return got
}
