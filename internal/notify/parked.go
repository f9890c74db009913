package notify

import (
	"maps"
	"sync"
	"time"
)

// expiryGrace is how long after its expiry a message counts as gone from the stream: the server drops it within seconds, by its own clock.
const expiryGrace = 10 * time.Second

// parked tracks the messages of a sink that wait on the stream to be retried, by their sequences. It is safe for concurrent use. The zero value
// is ready to use.
type parked struct {
	mu sync.Mutex
	// ends has the time when the stream drops each message. It is zero if the message has no expiry of its own.
	ends map[uint64]time.Time
}

func (p *parked) add(seq uint64, end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends == nil {
		p.ends = make(map[uint64]time.Time)
	}
	p.ends[seq] = end
}

// remove is called for a message that is delivered again.
func (p *parked) remove(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ends, seq)
}

// dropOutside forgets the messages outside of the stream's sequences, and returns how many there were.
func (p *parked) dropOutside(first, last uint64) int {
	return p.drop(func(seq uint64, _ time.Time) bool { return seq < first || seq > last })
}

// dropExpired forgets the messages that have expired, and returns how many there were.
func (p *parked) dropExpired(now time.Time) int {
	return p.drop(func(_ uint64, end time.Time) bool { return !end.IsZero() && now.After(end.Add(expiryGrace)) })
}

func (p *parked) drop(isGone func(uint64, time.Time) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.ends)
	maps.DeleteFunc(p.ends, isGone)
	return before - len(p.ends)
}
