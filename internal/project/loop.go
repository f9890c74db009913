package project

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// workers is how many resources are processed concurrently.
const workers = 4

// maxOwed is the maximum number of unpublished reports of a resource. If there are more, the oldest are dropped: the log and the Kubernetes Events
// have them, too.
const maxOwed = 16

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
	left leftReports

	retries retries
}

// item is what the loop knows about a resource. All fields except causes belong to the worker that processes the resource.
type item struct {
	causes []*cause
	// answered is the number of causes for which something was reported.
	answered int
	// owed has the reports that have not been published yet, at most maxOwed.
	owed []events.Projection
	// told is the last result that was reported, or that needed no report.
	told result
	// written is the resourceVersion of the last write.
	written string
	// failures counts the failures in a row.
	failures int
	backoff  wait.Backoff
	// rewrites spaces the writes if somebody keeps undoing them.
	rewrites rewrites
}

// add queues a resource, with a cause unless c is nil.
func (l *loop) add(k key, c *cause) {
	if c != nil {
		l.mu.Lock()
		i := l.item(k)
		i.causes = append(i.causes, c)
		l.mu.Unlock()
	}
	l.queue.Add(k)
}

// item returns the item of a resource, and creates it if necessary. The caller must hold the lock.
func (l *loop) item(k key) *item {
	i, ok := l.items[k]
	if !ok {
		i = &item{backoff: kube.PatchBackoff(), rewrites: rewrites{backoff: kube.PatchBackoff()}}
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

// isReported reports whether the given number of causes need not wait for a resource that is unavailable: the failure has been reported for all
// of them, and each retry reads the Secret again. Events that are never acked would keep the server from delivering others.
func (i *item) isReported(causes int) bool {
	return i.told.reason == reasonUnavailable && len(i.owed) == 0 && i.answered == causes
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
		i.owe(*l.reporter.tell(ctx, t, r, causes, began))
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

// owe appends a report to be published.
func (i *item) owe(report events.Projection) {
	i.owed = append(i.owed, report)
	i.owed = i.owed[max(0, len(i.owed)-maxOwed):]
}

// unwritten returns the result for a request that changed nothing.
func (r result) unwritten() result {
	if r.version = ""; !r.reason.open() {
		r.reason, r.message = reasonNone, ""
	}
	return r
}

// repeats reports whether the result says the same as told.
func (r result) repeats(told result) bool {
	return r.reason == told.reason && r.message == told.message
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
