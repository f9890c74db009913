package inventory

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/keyturn/keyturn/internal/events"
)

// busyLimit is how long a namespace counts as busy after the last change of a source in it: as long as a rollout may take by default.
const busyLimit = 15 * time.Minute

// busyNamespace is a namespace in which a source has changed.
type busyNamespace struct {
	next, until time.Time
	pause       time.Duration
	seen        contents
}

// contents differ if a list of the same namespace does: every write has a newer resourceVersion.
type contents struct {
	newest string
	count  int
}

// takeAsked makes the namespaces busy that were asked for. One that was listed just now is listed again after busyInterval.
func (p *poller) takeAsked(now time.Time) {
	p.mu.Lock()
	asked := p.asked
	p.asked = make(map[string]struct{})
	p.mu.Unlock()
	for namespace := range asked {
		b := p.busy[namespace]
		if b == nil {
			b = &busyNamespace{next: now}
			p.busy[namespace] = b
		} else if soon := b.next.Add(busyInterval - b.pause); soon.Before(b.next) {
			b.next = soon
		}
		b.pause, b.until = busyInterval, now.Add(busyLimit)
	}
}

// listed records a list of a busy namespace. While nothing changes there, the pauses become longer.
func (p *poller) listed(namespace string, b *busyNamespace, seen contents, now time.Time) {
	if b.pause *= 2; seen != b.seen {
		b.pause = busyInterval
	}
	b.seen, b.next = seen, now.Add(b.pause)
	if b.pause >= quietInterval || now.After(b.until) {
		delete(p.busy, namespace)
	}
}

// contentsOf returns those of one namespace in a list.
func contentsOf(items []any, namespace string) contents {
	var c contents
	for _, item := range items {
		about, err := meta.Accessor(item)
		if err != nil || about.GetNamespace() != namespace {
			continue
		}
		c.count++
		if version := about.GetResourceVersion(); c.newest == "" || events.Newer(version, c.newest) {
			c.newest = version
		}
	}
	return c
}
