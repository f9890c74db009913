package project

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// maxLeft is the maximum number of reports in leftReports. If there are more, the oldest are dropped.
const maxLeft = 256

// leftKey is the key on the queue that makes the loop publish the leftReports. No resource has it.
var leftKey = key{}

// leftReports has the unpublished reports of resources that are gone or no longer want anything. They share one queue key, so that they occupy
// at most one worker while NATS is unreachable. It is safe for concurrent use, with a single publisher.
type leftReports struct {
	mu      sync.Mutex
	list    []events.Projection
	backoff *wait.Backoff
}

// add appends reports. It returns false if reports is empty.
func (r *leftReports) add(reports []events.Projection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, reports...)
	r.list = r.list[max(0, len(r.list)-maxLeft):]
	return len(reports) > 0
}

// next removes and returns the oldest report. It returns false if there is none.
func (r *leftReports) next() (events.Projection, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		r.list = nil
		return events.Projection{}, false
	}
	oldest := r.list[0]
	r.list = r.list[1:]
	return oldest, true
}

// giveBack puts back the report that next returned, if it could not be published.
func (r *leftReports) giveBack(oldest events.Projection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxLeft {
		r.list = append([]events.Projection{oldest}, r.list...)
	}
}

// publishLeft publishes the leftReports. If one cannot be published, it retries later with backoff.
func (l *loop) publishLeft(ctx context.Context) {
	for {
		report, ok := l.left.next()
		if !ok {
			l.left.backoff = nil
			return
		}
		err := l.reporter.publish(ctx, report)
		if err == nil {
			continue
		}
		l.left.giveBack(report)
		if l.left.backoff == nil {
			first := kube.PatchBackoff()
			l.left.backoff = &first
		}
		delay := l.left.backoff.Step()
		l.log.WarnContext(ctx, "reports of resources that are gone not published", "retry_in", delay, "err", err)
		l.queue.AddAfter(leftKey, delay)
		return
	}
}
