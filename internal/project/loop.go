package project

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/kube"
)

// workers is the number of resources that are processed concurrently.
const workers = 4

// loop processes resources. At most one worker processes a resource at a time.
type loop struct {
	index    *index
	apply    *applier
	reporter *reporter
	log      *slog.Logger
	now      func() time.Time
	queue    workqueue.TypedDelayingInterface[key]

	mu    sync.Mutex
	items map[key]*item
	// left has the unpublished reports of resources that were forgotten.
	left    leftReports
	retries retries
}

// add queues a resource with a cause.
func (l *loop) add(k key, c *cause) {
	l.mu.Lock()
	i := l.item(k)
	i.causes = append(i.causes, c)
	l.mu.Unlock()
	l.queue.Add(k)
}

// item returns the item of a resource, and creates it if necessary. The caller must hold the lock.
func (l *loop) item(k key) *item {
	i, ok := l.items[k]
	if !ok {
		i = &item{backoff: kube.PatchBackoff()}
		l.items[k] = i
	}
	return i
}

// run processes resources until the queue is shut down.
func (l *loop) run(ctx context.Context) {
	for {
		k, ended := l.queue.Get()
		if ended || ctx.Err() != nil {
			return
		}
		l.take(ctx, k)
		l.queue.Done(k)
	}
}

// take processes a resource, or lets it wait until fewer of those that have failed are processed.
func (l *loop) take(ctx context.Context, k key) {
	l.mu.Lock()
	i := l.items[k]
	l.mu.Unlock()
	if i == nil || i.failures == 0 {
		l.step(ctx, k)
		return
	}
	if !l.retries.begin(k) {
		return
	}
	l.step(ctx, k)
	if next, ok := l.retries.end(); ok {
		l.queue.Add(next)
	}
}

func (l *loop) step(ctx context.Context, k key) {
	if k == leftKey {
		l.publishLeft(ctx)
		return
	}
	l.mu.Lock()
	i := l.item(k)
	causes := i.causes
	l.mu.Unlock()
	t := l.index.get(k)
	if t == nil {
		l.forget(ctx, k)
		return
	}
	if pause := i.rewrites.pause(l.now()); pause > 0 && len(causes) == 0 {
		l.queue.AddAfter(k, pause)
		return
	}
	err := l.deal(ctx, t, i, causes)
	if err != nil {
		if ctx.Err() != nil {
			return // The causes are redelivered.
		}
		delay := i.backoff.Step()
		l.log.WarnContext(within(ctx, causes), "resource to be dealt with again", "resource", t.workload().String(), "namespace", k.namespace,
			"retry_in", delay, "err", err)
		l.queue.AddAfter(k, delay)
		if !i.isReported(len(causes)) {
			return
		}
	}
	l.mu.Lock()
	i.causes, i.answered = i.causes[len(causes):], 0
	if err == nil {
		i.backoff = kube.PatchBackoff()
	}
	l.mu.Unlock()
	for _, c := range causes {
		c.settled(ctx)
	}
}

// deal gives a resource its values and reports the result. After an error, the caller tries again soon.
func (l *loop) deal(ctx context.Context, t *target, i *item, causes []*cause) error {
	ctx = within(ctx, causes)
	began := l.now()
	r, err := l.apply.project(ctx, t)
	if r.version != "" && r.version == i.written {
		r = r.unwritten() // The watch has not caught up with the previous write.
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return err
	case err == nil:
		i.failures = 0
		l.index.settle(t.key(), r)
		if r.reason == reasonNone && i.told.reason.open() {
			r.reason, r.message = reasonRecovered, explain(reasonRecovered, t)
		}
	default:
		if i.failures++; i.failures >= kube.MaxDenials {
			r.reason, r.message = reasonUnavailable, retried(err)
		}
	}
	if r.version != "" {
		i.written = r.version
		i.rewrites.add(l.now())
	}
	if r.reason != reasonNone && (r.version != "" && !r.reason.open() || len(causes) > i.answered || !r.repeats(i.told)) {
		i.owe(l.reporter.tell(ctx, t, r, causes, began))
		i.answered = len(causes)
	}
	if err == nil || r.reason != reasonNone {
		i.told = r
	}
	for len(i.owed) > 0 {
		if published := l.reporter.publish(ctx, i.owed[0]); published != nil {
			return published
		}
		i.owed = i.owed[1:]
	}
	return err
}

// forget drops the item of a resource that is gone or no longer wants anything. Its unpublished reports go to leftReports.
func (l *loop) forget(ctx context.Context, k key) {
	l.mu.Lock()
	i := l.items[k]
	delete(l.items, k)
	l.mu.Unlock()
	for _, c := range i.causes {
		c.settled(ctx)
	}
	if l.left.add(i.owed) {
		l.queue.Add(leftKey)
	}
}

// giveBack naks the events of the remaining causes, so that the next process gets them.
func (l *loop) giveBack(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.items {
		for _, c := range i.causes {
			c.delivery.Done(ctx, context.Canceled)
			c.span.End()
		}
	}
}

// maxRetrying is the number of workers that may process resources that have failed. A webhook that does not answer blocks each of them for up to
// kube.PatchTimeout, and the other workers remain for other resources.
const maxRetrying = workers / 2

// retries are the resources that have failed and are due again. The zero value is ready to use.
type retries struct {
	mu      sync.Mutex
	busy    int
	waiting []key
}

// begin reports whether a resource may be processed now. If so, the caller must call end afterwards. If not, the resource waits for another's end.
func (r *retries) begin(k key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.waiting, k)
	if r.busy == maxRetrying {
		if at < 0 {
			r.waiting = append(r.waiting, k)
		}
		return false
	}
	if at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
	}
	r.busy++
	return true
}

// end returns the resource that has waited longest, if there is one.
func (r *retries) end() (key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	if len(r.waiting) == 0 {
		return key{}, false
	}
	next := r.waiting[0]
	r.waiting = r.waiting[1:]
	return next, true
}
