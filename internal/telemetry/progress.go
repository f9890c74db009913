package telemetry

import (
	"fmt"
	"sync"
	"time"
)

// Progress is a liveness check of one loop that waits for work and does it in steps. A loop that waits is alive however
// long it waits; a loop that has been in one step for longer than the limit is stuck. Its methods are safe for
// concurrent use.
type Progress struct {
	now   func() time.Time
	limit time.Duration

	mu    sync.Mutex
	since time.Time // when the present step began; zero while the loop waits
}

// NewProgress returns the progress of a loop that waits. A step may take as long as limit.
func NewProgress(now func() time.Time, limit time.Duration) *Progress {
	return &Progress{now: now, limit: limit}
}

// Busy says that the loop has taken work and begins a step.
func (p *Progress) Busy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = p.now()
}

// Beat says that a step has ended and the next one begins. It changes nothing while the loop waits, so that code which
// is also called from elsewhere may beat.
func (p *Progress) Beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		p.since = p.now()
	}
}

// Idle says that the loop waits for work.
func (p *Progress) Idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}

// Check returns an error where the present step has taken longer than the limit. Its form is that of Health's checks.
func (p *Progress) Check() error {
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
