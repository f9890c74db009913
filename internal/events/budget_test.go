package events

import (
	"testing"
	"time"
)

func TestABudgetIsEarnedWithTime(t *testing.T) {
	now := time.Unix(1000, 0)
	b := NewBudget(60, time.Minute, 100) // one a second, a hundred at once
	for i := range 10 {
		if !b.Take("noisy", 10, now) {
			t.Fatalf("the %dth is refused", i+1)
		}
	}
	if b.Take("noisy", 1, now) {
		t.Error("more is taken than may be had at once")
	}
	if !b.Take("quiet", 100, now) {
		t.Error("another namespace has none")
	}
	if now = now.Add(30 * time.Second); !b.Take("noisy", 30, now) || b.Take("noisy", 1, now) {
		t.Error("half a minute later: want half of what a minute earns, and no more")
	}
	if now = now.Add(time.Hour); !b.Take("noisy", 100, now) || b.Take("noisy", 1, now) {
		t.Error("an hour later: want what may be had at once, and no more")
	}
}

func TestWhatIsReservedHasItsTurnInOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	b := NewBudget(60, time.Minute, 100)
	turn := func(size int) time.Duration { return b.Reserve("noisy", size, now).Sub(now) }
	for _, step := range []struct {
		size int
		want time.Duration
	}{{100, 0}, {10, 10 * time.Second}, {500, 510 * time.Second}, {10, 520 * time.Second}} {
		if got := turn(step.size); got != step.want {
			t.Errorf("%d bytes have their turn in %s, want %s", step.size, got, step.want)
		}
	}
	b.Return("noisy", 500)
	if got := turn(10); got != 30*time.Second {
		t.Errorf("after 500 bytes were returned, the turn is in %s, want 30s", got)
	}
	b.Return("unknown", 500)
	if got := b.Reserve("unknown", 100, now); !got.Equal(now) {
		t.Errorf("a namespace that has reserved nothing has its turn at %s, want at once", got)
	}
}
