package main

import (
	"context"
	"sync"
)

// inParallel calls fn for 0 to n-1 from a limited number of goroutines. It stops at the first error.
func inParallel(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	indices := make(chan int, n)
	for i := range n {
		indices <- i
	}
	close(indices)
	var running sync.WaitGroup
	for range min(n, writersAtOnce) {
		running.Go(func() {
			for i := range indices {
				if err := fn(ctx, i); err != nil {
					cancel(err)
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}
