package actuate

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// pendingChange is what one source asks of one workload.
type pendingChange struct {
	change events.Change
	// from is the content before the first change that is not decided yet. Nil: it is not known.
	from *events.Change
	// doubted means that a patch for it failed which may have been made nevertheless.
	doubted bool
	// gathered says that the change has waited because of the workload's own pause. What came and went meanwhile is no reason to roll.
	gathered bool
	// written is when the changes of the source were written. Nil: nobody has asked.
	written map[string]time.Time
	// events are held by this change, the newest last.
	events []*inFlightEvent
}

// longWait is how long a change waits at most without pods that may have started meanwhile.
const longWait = 5 * time.Second

// past returns what is known of the time before the change.
func (c *pendingChange) past(now time.Time) plan.Past {
	waited := !c.gathered && len(c.events) > 0 && now.Sub(c.events[0].delivery.Received) > longWait
	return plan.Past{From: c.from, Written: c.written, Waited: waited}
}

// newest returns the event of the change.
func (c *pendingChange) newest() *inFlightEvent { return c.events[len(c.events)-1] }

// pending is a workload with changes that are not decided yet.
type pending struct {
	key workload.Key
	// seen is the workload as it was when the newest change came. It may be gone since.
	seen    *workload.Workload
	changes map[events.Source]*pendingChange
	// first is when the first change came.
	first time.Time
	// due is when the workload is to be decided.
	due time.Time
	// decided is when the roll that is under way was decided.
	decided time.Time
	// attempts counts the patches that were not made, and backoff has the delay before the next one, which is not sent before retryAt.
	attempts int
	backoff  wait.Backoff
	retryAt  time.Time
	// denied is what the API server last refused to have written in the record, and denials counts how often it refused that.
	denied  map[string]workload.RolledFor
	denials int
	// held is why it waits although it is due. None: it does not.
	held plan.Reason
	// reported is the last reason for waiting that an outcome was published for.
	reported plan.Reason
	// position is the index in the heap of the debounce window, -1 while it is not there.
	position int
}

func newPending(key workload.Key, first time.Time) *pending {
	return &pending{
		key: key, changes: make(map[events.Source]*pendingChange), first: first, backoff: kube.PatchBackoff(), position: -1,
	}
}

// add records the change of an event. From is the baseline of the change, for the first one of its source.
func (p *pending) add(e *inFlightEvent, from *events.Change) {
	change := e.delivery.Change
	c := p.changes[change.Source]
	if c == nil {
		c = &pendingChange{from: from}
		p.changes[change.Source] = c
	}
	c.change = change
	c.events = append(c.events, e)
	e.open++
}

// isHeld reports whether the workload waits for something other than a time.
func (p *pending) isHeld() bool { return p.held != plan.None }

// deny counts a patch that the API server refused, and returns how many of the same content it has. A patch of other content may be accepted.
func (p *pending) deny(content map[string]workload.RolledFor) int {
	if !maps.Equal(p.denied, content) {
		p.denied, p.denials = content, 0
	}
	p.denials++
	return p.denials
}

// forgetBaselines drops what was before the changes, after a patch that failed: it may have been made, and its answer lost.
// Then the pods have more than that.
func (p *pending) forgetBaselines() {
	for _, c := range p.changes {
		c.from, c.doubted = nil, true
	}
}

// merge folds an older entry of the same workload into p. Where both have a change of a source, that of p is newer.
func (p *pending) merge(older *pending) {
	for source, old := range older.changes {
		if c, ok := p.changes[source]; ok {
			c.doubted = c.doubted || old.doubted
			c.events = append(old.events, c.events...)
		} else {
			p.changes[source] = old
		}
	}
	p.first, p.attempts, p.backoff, p.retryAt = older.first, older.attempts, older.backoff, older.retryAt
	p.denied, p.denials = older.denied, older.denials
}
