package events

import (
	"maps"
	"sync"
	"time"
)

// Notices keeps what others cause from being logged again and again. It is safe for concurrent use.
type Notices struct {
	every time.Duration
	mu    sync.Mutex
	last  map[string]time.Time
}

// NewNotices returns notices of which each subject has one in that time at most.
func NewNotices(every time.Duration) *Notices {
	return &Notices{every: every, last: make(map[string]time.Time)}
}

// Due reports whether there was no notice about the subject lately. There is one then.
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
