// Package backoff waits between attempts. The delays are those of a wait.Backoff of apimachinery.
//
// It imports no other package of this module, so that every package can use it.
package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Sleep waits, and reports whether it waited to the end. It returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Nth returns the n-th of the delays, where 1 is the first. After the last step, the delay stays the same. It is for attempts that something else
// counts, across restarts.
func NthDelay(delays wait.Backoff, n int) time.Duration {
	for range min(n, delays.Steps) - 1 {
		delays.Step()
	}
	return delays.Step()
}
