package openbao

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// spoolSize is the maximum number of audit entries that wait. An entry usually takes a few hundred bytes, and never more than a few thousand.
const spoolSize = 4096

const (
	// roomInterval is how often a sender that waits for room looks for some.
	roomInterval = 10 * time.Millisecond
	// maxRoomTakers is how much room others may take between the look and the entry.
	maxRoomTakers = maxBodies
	// maxWaiting is how many senders may wait for room. The bodies of others still have places.
	maxWaiting = maxBodies / 8
)

// intake accepts the audit lines of a store from the receiver. It never blocks, except in takeInTime.
type intake struct {
	store   string
	spool   chan entry
	hints   chan hint
	polls   pollRequests
	status  *status
	metrics *metrics
	recent  *recentRequests
	bodies  places // for bodies that are read: each store has its own, so that none is without because of another
	waiting places // for senders that wait for room
	now     func() time.Time
}

// take accepts an audit line. It does not keep the line.
func (i *intake) take(ctx context.Context, line []byte) {
	e, result := i.decode(line)
	if result == used {
		result = i.spoolOnce(e)
	}
	i.metrics.countLine(ctx, i.store, result)
}

// takeInTime accepts an audit line of a sender that can send it again. If there is no room for it until inTime is done, or too many
// wait for some, it returns false, and nothing of the line is counted.
func (i *intake) takeInTime(ctx, inTime context.Context, line []byte) bool {
	e, result := i.decode(line)
	if result == used {
		if !i.isRecent(&e) && !i.waitForRoom(inTime) {
			return false
		}
		result = i.spoolOnce(e)
	}
	i.metrics.countLine(ctx, i.store, result)
	return true
}

func (i *intake) decode(line []byte) (entry, verdict) {
	e, result := decodeLine(line)
	switch {
	case result != malformed:
		i.status.noteLine(i.now())
	case promising(line):
		i.polls.ask() // The line may be a part of a change.
	}
	if result == used {
		e.received = i.now()
		e.checkTimes()
	}
	return e, result
}

func (i *intake) isRecent(e *entry) bool {
	i.recent.mu.Lock()
	defer i.recent.mu.Unlock()
	return i.recent.has(e)
}

// waitForRoom returns false if there is no room until ctx is done, and at once if too many wait.
func (i *intake) waitForRoom(ctx context.Context) bool {
	switch {
	case i.hasRoom():
		return true
	case ctx.Err() != nil || !i.waiting.take():
		return false
	}
	defer i.waiting.free()
	found := func(context.Context) (bool, error) { return i.hasRoom(), nil }
	return wait.PollUntilContextCancel(ctx, roomInterval, false, found) == nil
}

// hasRoom reports whether there is room for another entry, even if all that are spooled become hints.
func (i *intake) hasRoom() bool {
	spooled := len(i.spool)
	return spooled < cap(i.spool) && spooled+len(i.hints)+maxRoomTakers < cap(i.hints)
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
