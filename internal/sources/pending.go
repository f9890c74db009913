package sources

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/events"
)

// The delay before a source is retried doubles from retryFirst to retryMost. That is short, because a stream that lost a server is back within
// seconds, and if it is not, the number of workers bounds the load of many retries.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 3 * time.Second
)

// turnCheck is the longest time that a source waits before it is looked at again, although its turn may be days away: until then, the queue keeps a
// source that is gone, and the turn may come earlier than expected.
const turnCheck = time.Minute

// recheckMost is the longest time that a source waits to be assessed again, for the same reason: the renewal of a Certificate may be weeks away. If
// the source is not due by then, its assessment gives the same result, and it is queued again.
const recheckMost = time.Hour

// queueEntry describes a queued source.
type queueEntry struct {
	// at is when a change was first noticed.
	at time.Time
	// created reports that the object was created while the watcher ran.
	created bool
	// gone reports that the object was deleted, or left the selector, while the watcher ran.
	gone bool
	// first is the object as it was created; it may have changed since. It is nil if the object was not created while the watcher ran, or if its
	// first state is not known.
	first *object
	// held is the part of its namespace's budget that the source has reserved.
	held reservation
}

// merge adds what was noticed later.
func (e *queueEntry) merge(later queueEntry) {
	e.created, e.gone = e.created || later.created, e.gone || later.gone
	if e.first == nil {
		e.first = later.first
	}
}

// pendingSources is the queue of sources to compare with their last event. It holds each source once, and hands it to one
// worker at a time. It is safe for concurrent use.
type pendingSources struct {
	queue workqueue.TypedRateLimitingInterface[events.Source]
	now   func() time.Time

	mu      sync.Mutex
	entries map[events.Source]pendingEntry
	// due is how many entries do not wait for a retry, inWork how many sources are with a worker.
	due, inWork int
	// late has the sources of objects that were created and could not be published yet, with the time at which the creation was noticed. It is nil
	// if there are none.
	late map[events.Source]time.Time
	// becameQuiet is closed when due and inWork are both zero. It is nil while nobody waits for that.
	becameQuiet chan struct{}
}

type pendingEntry struct {
	queueEntry
	// retrying reports that the source waits for a retry, or for a change if its event was dropped.
	retrying bool
}

func newPendingSources(now func() time.Time) *pendingSources {
	return &pendingSources{
		now: now, entries: make(map[events.Source]pendingEntry),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[events.Source](retryFirst, retryMost),
			workqueue.TypedRateLimitingQueueConfig[events.Source]{Name: "sources"}),
	}
}

// add queues a source. If it is queued already, it keeps the time at which it was first noticed; created and gone are sticky.
func (p *pendingSources) add(source events.Source, created bool) {
	p.put(source, queueEntry{created: created})
}

// addCreated queues the source of an object that was created.
func (p *pendingSources) addCreated(first *object) {
	p.put(first.about(), queueEntry{created: true, first: first})
}

// addGone queues a source whose object is gone.
func (p *pendingSources) addGone(source events.Source) { p.put(source, queueEntry{gone: true}) }

func (p *pendingSources) put(source events.Source, noticed queueEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, queued := p.entries[source]
	entry.merge(noticed)
	if !queued {
		entry.at = p.now()
	}
	if !queued || entry.retrying {
		p.due++
	}
	entry.retrying = false
	p.entries[source] = entry
	p.queue.Add(source)
}

// addAfter queues a source after a delay, or after recheckMost if that is shorter.
func (p *pendingSources) addAfter(source events.Source, delay time.Duration) {
	p.queue.AddAfter(source, min(delay, recheckMost))
}

// take blocks until a source is due and removes its entry. The caller ends the work with done or retry. It returns false
// after shutDown.
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
		entry.at = p.now() // Queued by addAfter, or by a retry that came after another worker was done.
	case !entry.retrying:
		p.due--
	}
	delete(p.entries, source)
	if len(p.entries) == 0 {
		// A map never shrinks, and after the first list it has room for every source.
		p.entries = make(map[events.Source]pendingEntry)
	}
	p.inWork++
	return source, entry.queueEntry, true
}

// done ends the work on a source that needs no retry.
func (p *pendingSources) done(source events.Source) {
	p.queue.Forget(source)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notLate(source)
	p.finish(source)
}

// notLate forgets that a source was created and could not be published. The lock is held.
func (p *pendingSources) notLate(source events.Source) {
	if delete(p.late, source); len(p.late) == 0 {
		p.late = nil
	}
}

// retry ends the work on a source that must be retried, and puts its entry back. What was noticed meanwhile is merged into it.
func (p *pendingSources) retry(source events.Source, entry queueEntry) {
	p.putBack(source, entry, p.queue.AddRateLimited)
}

// wait ends the work on a source whose turn comes after a delay, and puts its entry back.
func (p *pendingSources) wait(source events.Source, entry queueEntry, delay time.Duration) {
	p.putBack(source, entry, func(source events.Source) { p.queue.AddAfter(source, min(delay, turnCheck)) })
}

// drop ends the work on a source for whose current state no event can be published. The source is looked at again when it is next added. Until then
// the queue remembers that it was created.
func (p *pendingSources) drop(source events.Source, entry queueEntry) {
	if !entry.created {
		p.done(source)
		return
	}
	p.putBack(source, entry, func(source events.Source) {
		p.queue.Forget(source)
		p.notLate(source)
	})
}

func (p *pendingSources) putBack(source events.Source, entry queueEntry, again func(events.Source)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	later, queued := p.entries[source]
	entry.merge(later.queueEntry)
	p.entries[source] = pendingEntry{queueEntry: entry, retrying: !queued}
	if entry.created {
		if p.late == nil {
			p.late = make(map[events.Source]time.Time)
		}
		p.late[source] = entry.at
	}
	again(source)
	p.finish(source)
}

func (p *pendingSources) finish(source events.Source) {
	p.queue.Done(source)
	p.inWork--
	if p.isQuiet() && p.becameQuiet != nil {
		close(p.becameQuiet)
		p.becameQuiet = nil
	}
}

func (p *pendingSources) isQuiet() bool { return p.due == 0 && p.inWork == 0 }

// quiet returns a channel that is closed as soon as every source that was added is done or waits for a retry.
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

// publishedUntil returns the time at which the first of the late objects was noticed, or the given time if that is earlier.
func (p *pendingSources) publishedUntil(at time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, noticed := range p.late {
		if noticed.Before(at) {
			at = noticed
		}
	}
	return at
}

// length returns how many sources are due, without those that wait for a retry.
func (p *pendingSources) length() int { return p.queue.Len() }

// shutDown makes take return false once the queue is empty.
func (p *pendingSources) shutDown() { p.queue.ShutDown() }
