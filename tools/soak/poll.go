package main

import (
	"context"
	"time"
)

// poll calls done repeatedly until it returns true. It returns an error if the patience or the context ends first.
func poll(ctx context.Context, patience, every time.Duration, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for !done(ctx) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}
