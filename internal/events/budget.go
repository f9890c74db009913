package events

import (
	"maps"
	"sync"
	"time"
)

// Budget limits how many bytes each namespace may use. A namespace earns bytes over time, up to a maximum. It is safe for concurrent use.
type Budget struct {
	perSecond float64
	atOnce    time.Duration // how long it takes to earn the maximum

	mu sync.Mutex
	// earned is when a namespace will have earned the bytes that it has used. A missing namespace owes nothing.
	earned map[string]time.Time
	swept  int // the length of earned after the last sweep
}

// sweepFrom is the minimum number of namespaces for a sweep.
const sweepFrom = 64

// NewBudget returns a budget of the given number of bytes per time, with a maximum of atOnce bytes.
func NewBudget(bytes int64, per time.Duration, atOnce int64) *Budget {
	b := &Budget{perSecond: float64(bytes) / per.Seconds(), earned: make(map[string]time.Time)}
	b.atOnce = b.worth(int(atOnce))
	return b
}

// Reserve reserves bytes for a namespace, and returns when it may use them, which is now if it has enough.
func (b *Budget) Reserve(namespace string, size int, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := b.until(namespace, size, now)
	b.earned[namespace] = until
	if turn := until.Add(-b.atOnce); turn.After(now) {
		return turn
	}
	return now
}

// Take reports whether a namespace may use the bytes now. If so, it takes them from the budget.
func (b *Budget) Take(namespace string, size int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := b.until(namespace, size, now)
	if until.Add(-b.atOnce).After(now) {
		return false
	}
	b.earned[namespace] = until
	return true
}

// Return returns bytes that a namespace has reserved or taken but not used.
func (b *Budget) Return(namespace string, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if earned, ok := b.earned[namespace]; ok {
		b.earned[namespace] = earned.Add(-b.worth(size))
	}
}

// until returns when the namespace will have earned the given bytes in addition to those that it has used.
func (b *Budget) until(namespace string, size int, now time.Time) time.Time {
	b.sweep(now)
	earned := b.earned[namespace]
	if earned.Before(now) {
		earned = now
	}
	return earned.Add(b.worth(size))
}

// worth returns how long it takes to earn the bytes.
func (b *Budget) worth(size int) time.Duration {
	return time.Duration(float64(size) / b.perSecond * float64(time.Second))
}

// sweep forgets namespaces that owe nothing, whenever their number has doubled since the last sweep.
func (b *Budget) sweep(now time.Time) {
	if len(b.earned) < max(sweepFrom, 2*b.swept) {
		return
	}
	maps.DeleteFunc(b.earned, func(_ string, earned time.Time) bool { return !earned.After(now) })
	b.swept = len(b.earned)
}

// Notices limits the frequency of log lines that others can cause. It is safe for concurrent use.
type Notices struct {
	every time.Duration
	mu    sync.Mutex
	last  map[string]time.Time
}

// NewNotices returns Notices that allow each subject at most one notice in the given time.
func NewNotices(every time.Duration) *Notices {
	return &Notices{every: every, last: make(map[string]time.Time)}
}

// Due reports whether a notice about the subject is due. If so, it counts as given.
func (n *Notices) Due(subject string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.last[subject]; ok && now.Sub(last) < n.every {
		return false
	}
	maps.DeleteFunc(n.last, func(_ string, last time.Time) bool { return now.Sub(last) >= n.every })
	n.last[subject] = now
	return true
}
