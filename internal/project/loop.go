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

// workers is how many resources are dealt with at once. A webhook that does not answer delays one for the time that a patch may take.
const workers = 4

// maxOwed is how many reports of a resource wait for the stream. The oldest go first: logs and Kubernetes Events have them, too.
const maxOwed = 16

// loop deals with resources, each by one worker at a time.
type loop struct {
	index    *index
	apply    *applier
	reporter *reporter
	log      *slog.Logger
	now      func() time.Time
	queue    workqueue.TypedDelayingInterface[key]

	mu    sync.Mutex
	items map[key]*item
	// left are the reports of resources of which nothing is known any more.
	left leftReports
}

// item is what is known of a resource. The worker of the resource owns all but the causes.
type item struct {
	causes []*cause
	// answered is for how many of the causes something was reported.
	answered int
	// owed are the reports that were not published yet, at most maxOwed.
	owed []events.Projection
	// told is what was reported last, or found to need no report.
	told result
	// written is the resourceVersion of the last write.
	written string
	// failures are those in a row.
	failures int
	backoff  wait.Backoff
	// rewrites spaces the writes, if somebody undoes each.
	rewrites rewrites
}

// add has a resource dealt with, for a cause or, if that is nil, without one.
func (l *loop) add(k key, c *cause) {
	if c != nil {
		l.mu.Lock()
		i := l.item(k)
		i.causes = append(i.causes, c)
		l.mu.Unlock()
	}
	l.queue.Add(k)
}

// item returns what is known of a resource. The lock is held.
func (l *loop) item(k key) *item {
	i, ok := l.items[k]
	if !ok {
		i = &item{backoff: kube.PatchBackoff(), rewrites: rewrites{backoff: kube.PatchBackoff()}}
		l.items[k] = i
	}
	return i
}

// run deals with resources until the queue is shut down.
func (l *loop) run(ctx context.Context) {
	for {
		k, ended := l.queue.Get()
		if ended || ctx.Err() != nil {
			return
		}
		l.step(ctx, k)
		l.queue.Done(k)
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
			return // The causes are delivered again.
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

// isReported reports whether so many causes need not wait for a resource that cannot be dealt with: it is known, and all retries compare it with
// the Secret as it is then. Events that are never acked would keep the server from delivering others.
func (i *item) isReported(causes int) bool {
	return i.told.reason == reasonUnavailable && len(i.owed) == 0 && i.answered == causes
}

// deal gives a resource its values, and reports it. The error is one after which the same is tried again soon.
func (l *loop) deal(ctx context.Context, t *target, i *item, causes []*cause) error {
	ctx = within(ctx, causes)
	began := l.now()
	r, err := l.apply.project(ctx, t)
	if r.version != "" && r.version == i.written {
		r = r.unwritten() // The watch is behind what was written before.
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

// owe has a report published.
func (i *item) owe(report events.Projection) {
	i.owed = append(i.owed, report)
	i.owed = i.owed[max(0, len(i.owed)-maxOwed):]
}

// unwritten is a result whose request has changed nothing.
func (r result) unwritten() result {
	if r.version = ""; !r.reason.open() {
		r.reason, r.message = reasonNone, ""
	}
	return r
}

// repeats reports whether a result says what another one said.
func (r result) repeats(told result) bool {
	return r.reason == told.reason && r.message == told.message
}

// forget drops what is known of a resource that is gone, or wants nothing any more. Its reports still wait for the stream.
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

// giveBack has the events delivered again, to the next process, that were not dealt with.
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
