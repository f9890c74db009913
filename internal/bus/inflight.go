package bus

import (
	"errors"
	"sync"
	"time"
)

// InFlight limits the number of publications in flight according to the speed of the responses. Otherwise, hundreds of clusters that publish on one
// hub would fill its queues until responses come too late, and unanswered events would be published again. It is safe for concurrent use.
type InFlight struct {
	most int
	now  func() time.Time

	mu      sync.Mutex
	room    sync.Cond
	taken   int
	limit   int
	prompt  int           // prompt responses since the last change of the limit
	halved  time.Time     // when the limit was last halved
	fastest time.Duration // the fastest response so far, which is the round trip to the server; zero before the first
}

// queueing is how much slower than the fastest response another one may be. Beyond it, publications wait for each other in the server.
const queueing = 200 * time.Millisecond

// NewInFlight returns an InFlight with a maximum number of publications. The clock is now.
func NewInFlight(most int, now func() time.Time) *InFlight {
	f := &InFlight{most: most, limit: most, now: now}
	f.room.L = &f.mu
	return f
}

// Enter blocks until one more publication may be in flight. Call Leave after it, even if nothing was published.
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

// Answered is called with the start of a publication and its error. After as many prompt responses as the limit, the limit grows by one. An
// ErrConflict is one at any speed, because it takes two round trips, and no other error is. A late or missing response halves the limit, but only if
// the publication began after the last halving, because those in flight at that time show the same.
func (f *InFlight) Answered(began time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.now()
	took, isConflict := at.Sub(began), errors.Is(err, ErrConflict)
	switch isLate := took > f.fastest+queueing && !isConflict || took >= answerTimeout; {
	case isLate && !began.Before(f.halved):
		f.limit, f.prompt, f.halved = max(f.limit/2, 1), 0, at
	case !isLate && (err == nil || isConflict):
		if f.prompt++; f.prompt >= f.limit {
			f.limit, f.prompt = min(f.limit+1, f.most), 0
		}
	}
	if err == nil && (f.fastest == 0 || took < f.fastest) {
		f.fastest = took
	}
	f.room.Broadcast()
}
