package kube

import (
	"context"
	"k8s.io/apimachinery/pkg/util/wait"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleepEndsWithTheContext(t *testing.T) {
	for _, tt := range []struct {
		name    string
		bound   time.Duration
		want    bool
		elapsed time.Duration
	}{
		{"the context lasts longer", time.Hour, true, time.Minute},
		{"the context ends first", time.Second, false, time.Second},
		{"the context has ended", 0, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.bound)
				defer cancel()
				began := time.Now()
				if got := Sleep(ctx, time.Minute); got != tt.want || time.Since(began) != tt.elapsed {
					t.Errorf("got %t after %s, want %t after %s", got, time.Since(began), tt.want, tt.elapsed)
				}
			})
		})
	}
}

func TestNthStaysAtTheLastDelay(t *testing.T) {
	delays := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 4, Cap: 5 * time.Second}
	for n, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 5: 5 * time.Second, 100: 5 * time.Second,
	} {
		if got := NthDelay(delays, n); got != want {
			t.Errorf("delay %d is %s, want %s", n, got, want)
		}
	}
}
