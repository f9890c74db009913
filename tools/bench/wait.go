package main

import (
	"context"
	"time"
)

// patience is how long anything expected may take, except thousands of rollouts.
const patience = 3 * time.Minute

// poll calls done repeatedly until it returns true, but not longer than within.
func poll(ctx context.Context, within, every time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
