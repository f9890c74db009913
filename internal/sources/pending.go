package sources

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// The delay before a retry doubles from retryFirst to retryMost. It is short, because a stream that lost a server is back within seconds.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 3 * time.Second
)

// checkMost is the longest wait before a source is looked at again. Its turn may be days away, but may also come earlier than expected.
const checkMost = time.Minute

// queueEntry describes a queued source.
type queueEntry struct {
	at      time.Time     // when a change was first noticed
	created bool          // the object was created while the watcher ran
	gone    bool          // it was deleted, or left the selector
	first   *kinds.Object // the object when it was created, or nil if unknown
	held    reservation   // of its namespace's budget
	failure string        // why it could not be published, or "", so that the same error is logged once
	changes int           // how often its content was seen to change
}

// merge adds a later notice.
func (e *queueEntry) merge(later queueEntry) {
	e.created, e.gone, e.changes = e.created || later.created, e.gone || later.gone, e.changes+later.changes
	if e.first == nil {
		e.first = later.first
	}
}

// pendingSources is the queue of sources to compare with their last event. It holds each source once, and hands it to one worker at a time. It is
// safe for concurrent use.
type pendingSources struct {
	queue workqueue.TypedRateLimitingInterface[events.Source]
	now   func() time.Time

	mu      sync.Mutex
	entries map[events.Source]pendingEntry
	inWork  map[events.Source]pendingEntry // those that are with a worker
	due     int                            // how many of the others need not wait
	// becameQuiet is closed when nothing is due or in work. It is nil while nobody waits for this.
	becameQuiet chan struct{}
}

type pendingEntry struct {
	queueEntry
	waits, dropped bool // for a retry, or for a change if its event was dropped
}

func newPendingSources(now func() time.Time) *pendingSources {
	return &pendingSources{
		now: now, entries: make(map[events.Source]pendingEntry), inWork: make(map[events.Source]pendingEntry),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[events.Source](retryFirst, retryMost),
			workqueue.TypedRateLimitingQueueConfig[events.Source]{Name: "sources"}),
	}
}

// add queues a source that may have changed. A queued source keeps the time of its first notice; created and gone are sticky.
func (p *pendingSources) add(source events.Source) { p.put(source, queueEntry{}) }

// put queues a source whose object was seen to be created or deleted.
func (p *pendingSources) put(source events.Source, noticed queueEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, queued := p.entries[source]
	entry.merge(noticed)
	if !queued {
		entry.at = p.now()
	}
	if !queued || entry.waits {
		p.due++
	}
	entry.waits = false
	p.entries[source] = entry
	p.queue.Add(source)
}

// AddAfter queues a source after a delay, or after checkMost if that is shorter.
func (p *pendingSources) AddAfter(source events.Source, delay time.Duration) {
	p.queue.AddAfter(source, min(delay, checkMost))
}

// take blocks until a source is due and removes its entry. The caller ends the work with done, retry, wait or drop. It returns false after shutDown.
func (p *pendingSources) take() (events.Source, queueEntry, bool) {
	source, shutDown := p.queue.Get()
	if shutDown {
		return events.Source{}, queueEntry{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, ok := p.entries[source]
	switch {
	case !ok:
		entry.at = p.now() // Queued by AddAfter, or by a retry that came after another worker was done.
	case !entry.waits:
		p.due--
	}
	delete(p.entries, source)
	if len(p.entries) == 0 {
		// Maps never shrink, and after the first list this one has room for every source.
		p.entries = make(map[events.Source]pendingEntry)
	}
	p.inWork[source] = entry
	return source, entry.queueEntry, true
}

// done ends the work on a source that needs no retry.
func (p *pendingSources) done(source events.Source) { p.end(source, nil, p.queue.Forget) }

// retry ends the work on a source that must be retried, and puts its entry back, merged with later notices.
func (p *pendingSources) retry(source events.Source, entry queueEntry) {
	p.end(source, &pendingEntry{queueEntry: entry}, p.queue.AddRateLimited)
}

// wait ends the work on a source that must wait for its turn, and puts its entry back.
func (p *pendingSources) wait(source events.Source, entry queueEntry, delay time.Duration) {
	p.end(source, &pendingEntry{queueEntry: entry}, func(source events.Source) { p.AddAfter(source, delay) })
}

// drop ends the work on a source whose current state can never be published. The source is looked at again when it is next added; until then, the
// queue remembers whether it was created.
func (p *pendingSources) drop(source events.Source, entry queueEntry) {
	var back *pendingEntry
	if entry.created {
		back = &pendingEntry{queueEntry: entry, dropped: true}
	}
	p.end(source, back, p.queue.Forget)
}

// end ends the work on a source, puts an entry back if it is not nil, and calls next.
func (p *pendingSources) end(source events.Source, back *pendingEntry, next func(events.Source)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if back != nil {
		later, queued := p.entries[source]
		back.merge(later.queueEntry)
		back.waits = !queued
		p.entries[source] = *back
	}
	next(source)
	p.queue.Done(source)
	delete(p.inWork, source)
	if p.isQuiet() && p.becameQuiet != nil {
		close(p.becameQuiet)
		p.becameQuiet = nil
	}
}

func (p *pendingSources) isQuiet() bool { return p.due == 0 && len(p.inWork) == 0 }

// quiet returns a channel that is closed once every added source is done or waits for a retry.
func (p *pendingSources) quiet() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isQuiet() {
		now := make(chan struct{})
		close(now)
		return now
	}
	if p.becameQuiet == nil {
		p.becameQuiet = make(chan struct{})
	}
	return p.becameQuiet
}

// publishedUntil returns the time of the first notice of the created objects that are not published yet, or the given time if that is earlier. It
// ignores objects that can never be published.
func (p *pendingSources) publishedUntil(at time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, entries := range []map[events.Source]pendingEntry{p.entries, p.inWork} {
		for _, entry := range entries {
			if entry.created && !entry.dropped && entry.at.Before(at) {
				at = entry.at
			}
		}
	}
	return at
}

// length returns the number of due sources, without those that wait for a retry.
func (p *pendingSources) length() int { return p.queue.Len() }

// shutDown makes take return false when the queue is empty.
func (p *pendingSources) shutDown() { p.queue.ShutDown() }
