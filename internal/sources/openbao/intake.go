package openbao

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	maxBodies = 64   // of a store that are read concurrently
	maxRecent = 4096 // remembered requests
	// maxAgain is the maximum number of entries in a body that is to be sent again, because entries that were taken must still be remembered then.
	maxAgain = maxRecent
)

// intake accepts the audit lines of a store from the receiver. It never blocks.
type intake struct {
	store   string
	looks   *looks
	polls   wakeups
	status  *status
	metrics *metrics
	bodies  chan struct{} // has an element for each body being read; each store has its own room
	now     func() time.Time
	// omitsAuthors drops the author of a change before anything else keeps it.
	omitsAuthors bool

	mu     sync.Mutex
	recent recentRequests
}

func newIntake(store string, s *status, m *metrics, now func() time.Time) *intake {
	return &intake{
		store: store, looks: newLooks(), polls: make(wakeups, 1), status: s, metrics: m,
		bodies: make(chan struct{}, maxBodies), now: now, recent: recentRequests{seed: maphash.MakeSeed()},
	}
}

// read takes the entries of a body. An audit device posts a single one, and its store waits for the answer. A log shipper posts many, and sends them
// again if full says that an entry was not taken. tooLong says that the body was not read to its end.
func (i *intake) read(ctx context.Context, body io.Reader) (full, tooLong bool, err error) {
	count := 0
	err = readEntries(body, func(f finding) {
		count++
		switch {
		case full || i.accept(ctx, f):
		case count <= maxAgain:
			full = true
		default:
			i.miss(ctx, dropped)
		}
	})
	_, tooLong = errors.AsType[*http.MaxBytesError](err)
	if err != nil && !tooLong {
		return false, false, err
	}
	isOnly := full && count == 1
	if isOnly || tooLong && !full {
		i.miss(ctx, dropped)
	}
	return full && !isOnly, tooLong, nil
}

// accept handles a finding of a body. It keeps the path to look at, not the line. It returns false, and counts nothing, if there is no room.
func (i *intake) accept(ctx context.Context, f finding) bool {
	result := f.verdict
	switch {
	case result == foreign:
		i.status.noteForeign(ctx)
	case result != malformed:
		i.status.noteLine(i.now())
	case f.isLost:
		i.polls.wake()
	}
	if result == used {
		if i.omitsAuthors {
			f.entry.by = ""
		}
		now := i.now()
		if f.entry.received = now; f.entry.at.IsZero() || f.entry.at.After(now.Add(maxAhead)) {
			f.entry.at = now // A time that no store's clock shows would make a state of KV v1 the latest forever.
		}
		result = i.lookOnce(f.entry)
	}
	if result == dropped {
		return false
	}
	i.metrics.countLine(ctx, i.store, result)
	return true
}

// lookOnce puts a look at the path of an entry, unless an earlier entry had the same request.
func (i *intake) lookOnce(e entry) verdict {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := i.recent.key(&e)
	switch {
	case key != 0 && i.recent.has(key):
		return ignored
	case !i.looks.put(newLook(e)):
		return dropped
	case key != 0:
		i.recent.add(key)
	}
	return used
}

// miss counts a part of the audit log that could not be accepted.
func (i *intake) miss(ctx context.Context, result verdict) {
	i.metrics.countLine(ctx, i.store, result)
	i.polls.wake()
}

// recentRequests remembers the requests of the last entries, between maxRecent and twice as many. A line may arrive twice: from two audit devices, or
// from a log shipper that got no answer.
type recentRequests struct {
	seed          maphash.Seed
	newest, older map[uint64]struct{}
}

// key returns the key of an entry's request, or zero if it has none.
func (r *recentRequests) key(e *entry) uint64 {
	if e.request == "" {
		return 0
	}
	timeless := *e // Each device writes its own time.
	timeless.at, timeless.received = time.Time{}, time.Time{}
	return maphash.Comparable(r.seed, timeless)
}

func (r *recentRequests) has(key uint64) bool {
	_, isNew := r.newest[key]
	_, isOld := r.older[key]
	return isNew || isOld
}

func (r *recentRequests) add(key uint64) {
	if r.newest == nil || len(r.newest) >= maxRecent {
		r.newest, r.older = make(map[uint64]struct{}), r.newest
	}
	r.newest[key] = struct{}{}
}
