package project

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// maxLeft is how many reports wait for the stream of all resources that are gone, or want nothing any more. The oldest go first.
const maxLeft = 256

// leftKey has the loop publish those reports. No resource has it.
var leftKey = key{}

// leftReports are the reports of resources that are gone, or want nothing any more, which the stream does not have yet. They wait together, so that
// while NATS is away they take one worker at most. It is safe for concurrent use, by one publisher.
type leftReports struct {
	mu      sync.Mutex
	list    []events.Projection
	backoff *wait.Backoff
}

// add has reports published after the others. It returns false if there are none.
func (r *leftReports) add(reports []events.Projection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, reports...)
	r.list = r.list[max(0, len(r.list)-maxLeft):]
	return len(reports) > 0
}

// next takes the oldest, and false if there is none.
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

// giveBack is called with the oldest if it was not published.
func (r *leftReports) giveBack(oldest events.Projection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxLeft {
		r.list = append([]events.Projection{oldest}, r.list...)
	}
}

// publishLeft publishes them, until one cannot be published.
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
