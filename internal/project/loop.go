package project

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// workers is the number of resources that are processed concurrently.
	workers = 4
	// maxRetrying is the maximum number of workers that process failed resources. A webhook that does not respond blocks each of them for up to
	// kube.PatchTimeout, and the other workers remain for other resources.
	maxRetrying = workers / 2
	// maxLeft is the maximum number of unpublished reports of deleted resources. If there are more, the oldest are dropped.
	maxLeft = 256
)

// loop processes resources. At most one worker processes a resource at a time.
type loop struct {
	index    *index
	apply    *applier
	reporter *reporter
	log      *slog.Logger
	now      func() time.Time
	queue    workqueue.TypedDelayingInterface[key]

	// left contains the unpublished reports of resources that were deleted or want nothing any more, at most maxLeft.
	left chan events.Projection

	mu    sync.Mutex
	items map[key]*item
	// retrying counts the workers that process failed resources. waiting contains failed resources that are due, but wait for such a worker.
	retrying int
	waiting  []key
}

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

// take processes a resource, or lets it wait until fewer failed resources are being processed.
func (l *loop) take(ctx context.Context, k key) {
	l.mu.Lock()
	i := l.items[k]
	isRetry := i != nil && i.failures > 0
	if isRetry && l.retrying == maxRetrying {
		if !slices.Contains(l.waiting, k) {
			l.waiting = append(l.waiting, k)
		}
		l.mu.Unlock()
		return
	}
	if isRetry {
		l.retrying++
		l.waiting = slices.DeleteFunc(l.waiting, func(other key) bool { return other == k })
	}
	l.mu.Unlock()
	l.step(ctx, k)
	if !isRetry {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retrying--
	if len(l.waiting) > 0 {
		l.queue.Add(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

func (l *loop) step(ctx context.Context, k key) {
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
		l.log.WarnContext(within(ctx, causes), "resource will be processed again", "resource", t.workload().String(), "namespace", k.namespace,
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

// deal gives a resource its values and reports the result. After an error, the caller retries soon.
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

// forget drops the item of a resource that was deleted or wants nothing any more, and leaves its unpublished reports to publishLeft.
func (l *loop) forget(ctx context.Context, k key) {
	l.mu.Lock()
	i := l.items[k]
	delete(l.items, k)
	for _, report := range i.owed {
		if len(l.left) == maxLeft {
			select {
			case <-l.left:
			default: // The item was taken meanwhile.
			}
		}
		l.left <- report
	}
	l.mu.Unlock()
	for _, c := range i.causes {
		c.settled(ctx)
	}
}

// publishLeft publishes the reports of deleted resources, each until it succeeds, until ctx is done.
func (l *loop) publishLeft(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case report := <-l.left:
			backoff := kube.PatchBackoff()
			for {
				err := l.reporter.publish(ctx, report)
				if err == nil {
					break
				}
				delay := backoff.Step()
				l.log.WarnContext(ctx, "cannot publish the report of a deleted resource", "retry_in", delay, "err", err)
				if !kube.Sleep(ctx, delay) {
					return
				}
			}
		}
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
