package main

import (
	"context"
	"time"
)

// poll calls done until it reports true, and returns an error when the patience or the context ends before.
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

// sleep returns after a time, or with an error when the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
