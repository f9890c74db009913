package health

import (
	"fmt"
	"sync"
	"time"
)

// Progress is a liveness check of one loop that waits for work and does it in steps. A loop that waits is alive, however long it waits;
// a loop whose current step has taken longer than the limit is stuck. Its methods are safe for concurrent use. The methods of a nil
// Progress do nothing, for loops that are not probed.
type Progress struct {
	now   func() time.Time
	limit time.Duration

	mu    sync.Mutex
	since time.Time // when the current step began; zero while the loop waits
}

// NewProgress returns the progress of a loop that waits for work. A step may take at most limit.
func NewProgress(now func() time.Time, limit time.Duration) *Progress {
	return &Progress{now: now, limit: limit}
}

// Busy is called when the loop has taken work and begins a step.
func (p *Progress) Busy() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = p.now()
}

// Idle is called when the loop waits for work.
func (p *Progress) Idle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}

// Check returns an error if the current step has taken longer than the limit. It is a check for Probes.
func (p *Progress) Check() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return nil
	}
	if took := p.now().Sub(p.since); took > p.limit {
		return fmt.Errorf("in one step for %s, limit %s", took.Round(time.Second), p.limit)
	}
	return nil
}
