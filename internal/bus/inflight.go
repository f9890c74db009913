package bus

import (
	"sync"
	"time"
)

// InFlight limits how many publications are in flight by how fast they are answered. Otherwise hundreds of clusters that publish on one hub fill its
// queues until answers come too late, and what was not answered is published again. It is safe for concurrent use.
type InFlight struct {
	most int
	now  func() time.Time

	mu      sync.Mutex
	room    sync.Cond
	taken   int
	limit   int
	prompt  int           // the prompt answers since the limit was last changed
	halved  time.Time     // when the limit was last halved
	fastest time.Duration // the fastest answer so far, which is the way to the server and back; zero before the first
}

// queueing is how much longer than the fastest answer another one may take. Beyond it, publications wait for each other in the server.
const queueing = 200 * time.Millisecond

// NewInFlight returns an InFlight that allows at most so many publications. The clock is now.
func NewInFlight(most int, now func() time.Time) *InFlight {
	f := &InFlight{most: most, limit: most, now: now}
	f.room.L = &f.mu
	return f
}

// Enter blocks until one more may be in flight. Leave must follow, also if nothing was published.
func (f *InFlight) Enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.taken >= f.limit {
		f.room.Wait()
	}
	f.taken++
}

// Leave makes room for another.
func (f *InFlight) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken--
	f.room.Broadcast()
}

// Answered is called with when a publication began and its error. When as many were answered promptly as are allowed, one more is. A late answer, or
// none, halves how many are allowed, but only if the publication began after the last time: those that were in flight then say the same.
func (f *InFlight) Answered(began time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.now()
	took := at.Sub(began)
	switch isLate := took > f.fastest+queueing; {
	case isLate && !began.Before(f.halved):
		f.limit, f.prompt, f.halved = max(f.limit/2, 1), 0, at
	case !isLate && err == nil:
		if f.prompt++; f.prompt >= f.limit {
			f.limit, f.prompt = min(f.limit+1, f.most), 0
		}
	}
	if err == nil && (f.fastest == 0 || took < f.fastest) {
		f.fastest = took
	}
	f.room.Broadcast()
}
