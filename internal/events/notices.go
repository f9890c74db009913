package events

import (
	"maps"
	"sync"
	"time"
)

// Notices limits how often log lines that others can cause are logged. It is safe for concurrent use.
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
