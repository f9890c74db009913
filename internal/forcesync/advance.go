package forcesync

import (
	"context"
	"time"
)

// Signal returns a channel that is readable when Collect has work: responses to patches, or changes of ExternalSecrets.
func (y *Syncer) Signal() <-chan struct{} { return y.index.signal }

// Collect must be called after each signal.
func (y *Syncer) Collect(ctx context.Context) {
	for len(y.answers) > 0 {
		y.answered(ctx, <-y.answers)
	}
	y.each(func(s *pendingSync) { y.review(ctx, s) })
}

// Next returns when to call Advance next if nothing else happens before. ok is false if there is no such time.
func (y *Syncer) Next() (at time.Time, ok bool) { return y.due, !y.due.IsZero() }

// Advance handles due states, and patches while slots are free.
func (y *Syncer) Advance(ctx context.Context) {
	if now := y.Now(); !y.due.IsZero() && !now.Before(y.due) {
		y.due = time.Time{}
		y.each(func(s *pendingSync) {
			switch {
			case s.due.IsZero():
			case now.Before(s.due):
				y.await(s, s.state, s.due)
			default:
				y.expire(ctx, s)
			}
		})
	}
	for y.slots.Free() > 0 { // Many may wait, and Advance is called with each event.
		s := y.turns.Pop(y.slots.MayTake)
		if s == nil {
			s = y.last.Pop(y.slots.MayTake)
		}
		if s == nil {
			return
		}
		y.start(ctx, s)
	}
}

// expire handles a sync whose state has ended. A sync that changed nothing is repeated, unless it was made after the store's lag. A sync whose result
// is unclear is repeated once.
func (y *Syncer) expire(ctx context.Context, s *pendingSync) {
	switch {
	case s.state == retrying || s.state == lagging:
		y.enqueue(ctx, s)
	case s.state == untried:
		y.finish(ctx, s, neverTried, nil)
	case s.state == checking && s.unclear && s.repeat > 0:
		y.finish(ctx, s, done, nil)
	case s.state == checking && (s.repeat >= maxRepeats || !s.lagEnd().IsZero()):
		y.finish(ctx, s, noChange, nil)
	case s.state == checking:
		s.repeat++
		y.enqueue(ctx, s)
	case y.Now().Before(s.asked.Add(syncTimeout)):
		y.giveUpSlot(ctx, s)
	case s.seen.Failed:
		y.finish(ctx, s, refused, nil)
	default:
		y.finish(ctx, s, timedOut, nil)
	}
}

// Stop waits for the patches in flight, and returns all slots. The events stay held.
func (y *Syncer) Stop(ctx context.Context) {
	y.sending.Wait()
	y.each(func(s *pendingSync) {
		y.returnSlot(ctx, s)
		s.endWait("interrupted")
	})
}
