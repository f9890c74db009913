package openbao

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// maxLine is the longest line that is kept, in bytes. Only answers about a whole mount are longer, such as those to the poller.
	maxLine    = 1 << 20
	readBuffer = 64 << 10 // bytes that are read at once
	maxBodies  = 64       // of a store that are read at once
	maxRecent  = 4096     // requests that are remembered
	// maxAgain is the maximum number of lines of a body that is to be sent again: those that were taken must still be known then.
	maxAgain = maxRecent
)

// intake accepts the audit lines of a store from the receiver. It never blocks.
type intake struct {
	store   string
	looks   *looks
	polls   wakeups
	status  *status
	metrics *metrics
	bodies  chan struct{} // has an element for each body that is read: each store has its own room, so that none is without because of another
	now     func() time.Time

	mu     sync.Mutex
	recent recentRequests
}

func newIntake(store string, s *status, m *metrics, now func() time.Time) *intake {
	return &intake{
		store: store, looks: newLooks(), polls: make(wakeups, 1), status: s, metrics: m,
		bodies: make(chan struct{}, maxBodies), now: now, recent: recentRequests{seed: maphash.MakeSeed()},
	}
}

// read takes the lines of a body. An audit device posts one line, for which its store waits. A log shipper posts many, and sends them again if full
// says that one was not taken. tooLong says that the body was not read to its end.
func (i *intake) read(ctx context.Context, body io.Reader) (full, tooLong bool, err error) {
	lines := 0
	take := func(line []byte) {
		lines++
		switch {
		case full || i.take(ctx, line):
		case lines <= maxAgain:
			full = true
		default:
			i.miss(ctx, dropped)
		}
	}
	rest, err := readLines(body, maxLine, take, func(head []byte) { i.skip(ctx, head) })
	_, tooLong = errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLong && len(rest) > 0:
		i.skip(ctx, rest)
	case tooLong:
	case err != nil:
		return false, false, err
	case len(rest) > 0:
		take(rest)
	}
	if full && lines == 1 {
		full = false
		i.miss(ctx, dropped)
	}
	return full, tooLong, nil
}

// take accepts an audit line. It keeps the path to look at, not the line. It returns false, and counts nothing, if there is no room.
func (i *intake) take(ctx context.Context, line []byte) bool {
	e, result := decodeLine(line)
	switch {
	case result != malformed:
		i.status.noteLine(i.now())
	case promising(line):
		i.polls.wake() // The line may be a part of a change.
	}
	if result == used {
		e.receiveAt(i.now())
		result = i.lookOnce(e)
	}
	if result == dropped {
		return false
	}
	i.metrics.countLine(ctx, i.store, result)
	return true
}

// lookOnce has the path of an entry looked at, unless an entry of the same request came before.
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

// skip is called with the start of a line that is too long to be decoded.
func (i *intake) skip(ctx context.Context, head []byte) {
	if promising(head) {
		i.miss(ctx, dropped)
		return
	}
	i.metrics.countLine(ctx, i.store, ignored)
}

// recentRequests remembers the requests of the last entries, at least maxRecent of them and at most twice as many. A line may arrive twice: from two
// audit devices, or from a log shipper that got no answer.
type recentRequests struct {
	seed          maphash.Seed
	newest, older map[uint64]struct{}
}

// key returns the key of an entry's request, or zero if it has none.
func (r *recentRequests) key(e *entry) uint64 {
	if e.request == "" {
		return 0
	}
	timeless := *e // Each device writes a line at a time of its own.
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

// readLines calls take for each line until the reader ends, and skip with the start of each line that is longer than the limit. It omits
// blank lines. It returns what follows the last line end, and the error that ended the reader, nil for io.EOF.
func readLines(r io.Reader, limit int, take, skip func(line []byte)) (rest []byte, err error) {
	reader := bufio.NewReaderSize(r, readBuffer)
	var line []byte // the start of a line that is longer than the buffer
	tooLong := false
	for {
		part, err := reader.ReadSlice('\n')
		switch {
		case tooLong:
		case len(line)+len(part) > limit+1:
			tooLong, line = true, append(line, part...)[:min(len(line)+len(part), readBuffer)]
		case len(line) > 0 || err != nil:
			line = append(line, part...)
		default:
			line = part
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		whole := bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case tooLong:
			skip(whole)
			whole = nil
		case len(bytes.TrimSpace(whole)) == 0:
			whole = nil
		case err == nil:
			take(whole)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return whole, err
		}
		// This releases the memory of a long line.
		tooLong, line = false, nil
	}
}
