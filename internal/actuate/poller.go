package actuate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// busyInterval is how often a namespace is listed in which something has just changed, and quietInterval how often everything is.
	busyInterval  = 2 * time.Second
	quietInterval = 30 * time.Second
	// busyLimit is how long a namespace counts as busy after the last change of a source in it: as long as a rollout may take by default.
	busyLimit = 15 * time.Minute
	// manyNamespaces are more than are listed one by one at a time: one list of everything costs less.
	manyNamespaces = 8
)

// lister lists the workloads of a kind in a namespace, or in all of them.
type lister func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error)

// poller keeps a store equal to the API server without a watch. It lists a namespace when a source has changed there, and again for as long as
// that changes its workloads; what else happens is seen every quietInterval. So an idle cluster costs a list of everything that the API server
// has in its memory twice a minute, and a change is acted on within about busyInterval.
type poller struct {
	store *kindStore
	list  lister
	log   *slog.Logger
	wake  chan struct{}

	mu    sync.Mutex
	asked map[string]struct{}

	// The rest belongs to run.
	busy map[string]*busyNamespace
	// next is when everything is listed.
	next time.Time
}

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

func newPoller(store *kindStore, list lister, log *slog.Logger) *poller {
	return &poller{
		store: store, list: list, log: log, wake: make(chan struct{}, 1), asked: make(map[string]struct{}),
		busy: make(map[string]*busyNamespace),
	}
}

// look has the workloads of a namespace listed soon. It does not block.
func (p *poller) look(namespace string) {
	if p.store.namespace != metav1.NamespaceAll && p.store.namespace != namespace {
		return
	}
	p.mu.Lock()
	p.asked[namespace] = struct{}{}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // awake already
	}
}

// run lists until the context is done. What is in the store was listed just before.
func (p *poller) run(ctx context.Context) {
	p.next = time.Now().Add(quietInterval)
	timer := time.NewTimer(quietInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		timer.Reset(p.pass(ctx))
	}
}

// pass lists what is due, and returns how long nothing is.
func (p *poller) pass(ctx context.Context) time.Duration {
	now := time.Now()
	p.takeAsked(now)
	var due []string
	for namespace, b := range p.busy {
		if !now.Before(b.next) {
			due = append(due, namespace)
		}
	}
	if !now.Before(p.next) || len(due) > manyNamespaces {
		p.listAll(ctx, now)
	} else {
		for _, namespace := range due {
			p.listOne(ctx, namespace, now)
		}
	}
	next := p.next
	for _, b := range p.busy {
		if b.next.Before(next) {
			next = b.next
		}
	}
	return max(time.Until(next), 0)
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

// listAll takes a list of everything, from the memory of the API server. One that is older than what is known is dropped.
func (p *poller) listAll(ctx context.Context, now time.Time) {
	items, version := p.read(ctx, p.store.namespace, metav1.ListOptions{ResourceVersion: "0"})
	if version == "" || p.store.seen != "" && workload.Newer(p.store.seen, version) {
		p.next = now.Add(busyInterval)
		for _, b := range p.busy {
			b.next = p.next
		}
		return
	}
	p.next = now.Add(quietInterval)
	_ = p.store.Replace(items, version) // It never fails.
	for namespace, b := range p.busy {
		p.listed(namespace, b, contentsOf(items, namespace), now)
	}
}

// listOne takes a list of one namespace.
func (p *poller) listOne(ctx context.Context, namespace string, now time.Time) {
	b := p.busy[namespace]
	items, version := p.read(ctx, namespace, metav1.ListOptions{})
	if version == "" {
		b.next = now.Add(busyInterval)
		return
	}
	part := &kindStore{index: p.store.index, kind: p.store.kind, namespace: namespace, synced: func() {}, seen: p.store.seen}
	_ = part.Replace(items, version) // It never fails.
	p.listed(namespace, b, contentsOf(items, namespace), now)
}

// listed takes note of a list of a busy namespace. While nothing changes there, the pauses become longer.
func (p *poller) listed(namespace string, b *busyNamespace, seen contents, now time.Time) {
	if b.pause *= 2; seen != b.seen {
		b.pause = busyInterval
	}
	b.seen, b.next = seen, now.Add(b.pause)
	if b.pause >= quietInterval || now.After(b.until) {
		delete(p.busy, namespace)
	}
}

// read returns the objects of a list and its resourceVersion, which is empty if it failed.
func (p *poller) read(ctx context.Context, namespace string, options metav1.ListOptions) (items []any, version string) {
	list, err := p.list(ctx, namespace, options)
	var objects []runtime.Object
	if err == nil {
		objects, err = meta.ExtractList(list)
	}
	if err == nil {
		version, err = meta.NewAccessor().ResourceVersion(list)
	}
	if err != nil {
		if ctx.Err() == nil {
			p.log.WarnContext(ctx, "cannot list workloads", "resource", place(p.store.kind, namespace), "retry_in", busyInterval, "err", err)
		}
		return nil, ""
	}
	items = make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, object)
	}
	return items, version
}

// contentsOf returns those of one namespace in a list.
func contentsOf(items []any, namespace string) contents {
	var c contents
	for _, item := range items {
		about, err := meta.Accessor(item)
		if err != nil || namespace != metav1.NamespaceAll && about.GetNamespace() != namespace {
			continue
		}
		c.count++
		if version := about.GetResourceVersion(); c.newest == "" || workload.Newer(version, c.newest) {
			c.newest = version
		}
	}
	return c
}
