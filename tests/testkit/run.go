package testkit

import (
	"context"
	"sync"
	"testing"
)

// Run runs a program under test in the background until the returned function is called, or until the test ends, and waits for it
// to return. The test fails if run returns an error.
func Run(t testing.TB, name string, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the %s ended with an error: %v", name, err)
		}
	})
	t.Cleanup(stop)
	return stop
}
