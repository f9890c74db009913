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
}

// item is what is known of a resource. The worker of the resource owns all but the causes.
type item struct {
	causes []*cause
	// owed was not published yet, or is nil.
	owed *events.Projection
	// told is what was reported last.
	told result
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
	l.mu.Lock()
	i := l.item(k)
	causes := i.causes
	l.mu.Unlock()
	if t := l.index.get(k); t == nil {
		l.forget(ctx, k)
		return
	} else if pause := i.rewrites.pause(l.now()); pause > 0 && len(causes) == 0 {
		l.queue.AddAfter(k, pause)
		return
	} else if err := l.deal(ctx, t, i, causes); err != nil {
		if ctx.Err() != nil {
			return // The causes are delivered again.
		}
		delay := i.backoff.Step()
		l.log.WarnContext(within(ctx, causes), "resource not given its values yet", "resource", t.workload().String(), "namespace", k.namespace,
			"retry_in", delay, "err", err)
		l.queue.AddAfter(k, delay)
		return
	}
	l.mu.Lock()
	i.causes = i.causes[len(causes):]
	i.failures, i.backoff = 0, kube.PatchBackoff()
	l.mu.Unlock()
	for _, c := range causes {
		c.settled(ctx)
	}
}

// deal gives a resource its values, and reports it. The error is one after which the same is tried again soon.
func (l *loop) deal(ctx context.Context, t *target, i *item, causes []*cause) error {
	ctx = within(ctx, causes)
	began := l.now()
	r, err := l.apply.project(ctx, t)
	if err != nil {
		if i.failures++; i.failures == kube.MaxDenials {
			r.reason, r.message = reasonUnavailable, retried(err)
		}
	}
	if r.reason.wrote() || r.reason != reasonNone && (len(causes) > 0 || !r.repeats(i.told)) {
		i.owed = l.reporter.tell(ctx, t, r, causes, began)
	}
	if r.reason.wrote() {
		i.rewrites.add(l.now())
	}
	if err == nil {
		i.told = r
	}
	if i.owed != nil {
		if published := l.reporter.publish(ctx, *i.owed); published != nil {
			return published
		}
		i.owed = nil
	}
	return err
}

// repeats reports whether a result says what another one said.
func (r result) repeats(told result) bool {
	return r.reason == told.reason && r.message == told.message
}

// forget drops what is known of a resource that is gone, or wants nothing any more.
func (l *loop) forget(ctx context.Context, k key) {
	l.mu.Lock()
	i := l.items[k]
	delete(l.items, k)
	l.mu.Unlock()
	for _, c := range i.causes {
		c.settled(ctx)
	}
}

// giveBack has the events delivered again, to the next process, that were not dealt with.
func (l *loop) giveBack(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.items {
		for _, c := range i.causes {
			c.delivery.Done(ctx, context.Canceled)
		}
	}
}
