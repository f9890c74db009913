package notify

import (
	"maps"
	"sync"
)

// parked are the messages of a sink that the stream keeps to be retried, by their sequences. It is safe for concurrent use. The zero value is ready
// for use.
type parked struct {
	mu        sync.Mutex
	sequences map[uint64]struct{}
}

func (p *parked) add(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sequences == nil {
		p.sequences = make(map[uint64]struct{})
	}
	p.sequences[seq] = struct{}{}
}

// remove is called for a message that is delivered again.
func (p *parked) remove(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sequences, seq)
}

// dropOutside forgets the messages that a stream with these sequences does not have any more, and returns how many there are.
func (p *parked) dropOutside(first, last uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.sequences)
	maps.DeleteFunc(p.sequences, func(seq uint64, _ struct{}) bool { return seq < first || seq > last })
	return before - len(p.sequences)
}
