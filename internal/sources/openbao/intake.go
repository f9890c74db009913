package openbao

import (
	"context"
	"time"
)

// spoolSize is the maximum number of audit entries that wait. An entry usually takes a few hundred bytes, and never more than a few thousand.
const spoolSize = 4096

// intake accepts the audit lines of a store from its receivers. It never blocks.
type intake struct {
	store   string
	spool   chan entry
	polls   pollRequests
	status  *status
	metrics *metrics
	recent  *recentRequests
	now     func() time.Time
}

// take accepts an audit line. It does not keep the line.
func (i *intake) take(ctx context.Context, line []byte, authenticated bool) {
	e, result := decodeLine(line)
	switch {
	case result != malformed:
		i.status.noteLine(i.now())
	case promising(line):
		i.polls.ask() // The line may be a part of a change.
	}
	if result == used {
		e.received, e.authenticated = i.now(), authenticated
		e.checkTimes()
		result = i.spoolOnce(e)
	}
	i.metrics.countLine(ctx, i.store, result)
}

// spoolOnce puts an entry into the spool, unless its request was spooled before.
func (i *intake) spoolOnce(e entry) verdict {
	i.recent.mu.Lock()
	defer i.recent.mu.Unlock()
	if i.recent.has(&e) {
		return ignored
	}
	select {
	case i.spool <- e:
		i.recent.add(&e)
		return used
	default:
		i.polls.ask()
		return dropped
	}
}

// miss is called when a part of the audit log could not be accepted.
func (i *intake) miss(ctx context.Context, result verdict) {
	i.metrics.countLine(ctx, i.store, result)
	i.polls.ask()
}

// skip is called with the start of a line that is too long to be decoded. It reports whether the line may have been a change.
func (i *intake) skip(ctx context.Context, head []byte) bool {
	if promising(head) {
		i.miss(ctx, dropped)
		return true
	}
	i.metrics.countLine(ctx, i.store, ignored)
	return false
}

// refuse is called when a sender is not allowed.
func (i *intake) refuse(ctx context.Context) { i.metrics.countLine(ctx, i.store, refused) }
