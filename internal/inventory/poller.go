package inventory

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// busyInterval is how often a namespace is listed in which something has just changed. quietInterval is how often everything is listed.
	busyInterval  = 2 * time.Second
	quietInterval = 30 * time.Second
	// manyNamespaces is the maximum number of namespaces that are listed one by one. For more, a single list of everything is cheaper.
	manyNamespaces = 8
)

// listBackoff returns the delays between refused lists. With them, the API server gets no more requests than in an idle cluster.
func listBackoff() wait.Backoff {
	return wait.Backoff{Duration: busyInterval, Factor: 2, Jitter: 0.2, Steps: math.MaxInt, Cap: quietInterval}
}

// lister lists the workloads of a kind in a namespace, or in all of them.
type lister interface {
	list(ctx context.Context, s *kindStore, namespace string, options metav1.ListOptions) (runtime.Object, error)
}

// poller keeps a store in line with the API server without a watch. It lists a namespace after a change of a source there, and again while its
// workloads change; other changes are seen at the next quietInterval. So an idle cluster causes two lists of everything a minute from the API
// server's memory, and a change takes effect within about busyInterval. A refused list delays all others.
type poller struct {
	store *kindStore
	lister
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{}

	mu    sync.Mutex
	asked map[string]struct{}

	// The following fields belong to run.
	busy map[string]*busyNamespace
	// next is when everything is listed next.
	next time.Time
	// retry is the earliest time of the next list after a refused one, zero if the last one was not refused. backoff has the delays.
	retry   time.Time
	backoff wait.Backoff
	// removed is the error of a list of a kind that the API server no longer serves.
	removed error
}

func newPoller(store *kindStore, list lister, log *slog.Logger, now func() time.Time) *poller {
	return &poller{
		store: store, lister: list, log: log, now: now, wake: make(chan struct{}, 1), asked: make(map[string]struct{}),
		busy: make(map[string]*busyNamespace), backoff: listBackoff(),
	}
}

// look schedules a list of a namespace. It does not block.
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

// run lists until the context is done and returns nil, or until the API server no longer serves the kind and returns that error. Call it right after
// a list of the whole store. It may be called again: busy namespaces stay busy.
func (p *poller) run(ctx context.Context) error {
	p.next = p.now().Add(quietInterval)
	p.accepted()
	timer := time.NewTimer(p.pause())
	defer timer.Stop()
	for p.removed == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-timer.C:
		}
		timer.Reset(p.pass(ctx))
	}
	return p.removed
}

// pass performs the due lists, and returns the time until the next one is due.
func (p *poller) pass(ctx context.Context) time.Duration {
	now := p.now()
	p.takeAsked(now)
	if now.Before(p.retry) {
		return p.pause()
	}
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
			if !p.listOne(ctx, namespace, now) {
				break
			}
		}
	}
	return p.pause()
}

// pause returns the time until a list is due.
func (p *poller) pause() time.Duration {
	next := p.next
	for _, b := range p.busy {
		if b.next.Before(next) {
			next = b.next
		}
	}
	now := p.now()
	return max(next.Sub(now), p.retry.Sub(now), 0)
}

// listAll lists everything from the memory of the API server. A list that is older than the known state is dropped.
func (p *poller) listAll(ctx context.Context, now time.Time) {
	workloads, version := p.read(ctx, p.store.namespace, metav1.ListOptions{ResourceVersion: "0"})
	if version == "" {
		return
	}
	if p.store.seen != "" && events.Newer(p.store.seen, version) {
		p.next = now.Add(busyInterval)
		for _, b := range p.busy {
			b.next = p.next
		}
		return
	}
	p.next = now.Add(quietInterval)
	p.store.Replace(ctx, workloads, version)
	for namespace, b := range p.busy {
		p.listed(namespace, b, contentsOf(workloads, namespace), now)
	}
}

// listOne lists one namespace. It returns false if the list was refused.
func (p *poller) listOne(ctx context.Context, namespace string, now time.Time) bool {
	workloads, version := p.read(ctx, namespace, metav1.ListOptions{})
	if version == "" {
		return false
	}
	p.store.replaceAt(Place{p.store.kind.Name, namespace}, workloads, p.store.seen)
	p.listed(namespace, p.busy[namespace], contentsOf(workloads, namespace), now)
	return true
}

// read returns the workloads of a list and its resourceVersion, which is empty if the list failed.
func (p *poller) read(ctx context.Context, namespace string, options metav1.ListOptions) (workloads []*workload.Workload, version string) {
	list, err := p.list(ctx, p.store, namespace, options)
	if err == nil {
		err = meta.EachListItem(list, func(object runtime.Object) error {
			if w, ok := p.store.Reduce(object); ok {
				workloads = append(workloads, w)
			}
			return nil
		})
	}
	if err == nil {
		version, err = meta.NewAccessor().ResourceVersion(list)
	}
	if err == nil && version == "" {
		err = errors.New("the list has no resourceVersion")
	}
	if err != nil {
		p.refused(ctx, namespace, err)
		return nil, ""
	}
	p.accepted()
	return workloads, version
}

// refused delays all lists, longer each time. It logs only the first of several consecutive refusals.
func (p *poller) refused(ctx context.Context, namespace string, err error) {
	if p.store.isRemoved(err) {
		p.removed = err
		return
	}
	delay, isFirst := p.backoff.Step(), p.retry.IsZero()
	p.retry = p.now().Add(delay)
	if isFirst && ctx.Err() == nil {
		p.log.WarnContext(ctx, "cannot list workloads; retrying with backoff", "resource", kindScope(p.store.kind, namespace), "retry_in", delay,
			"max_retry_in", quietInterval, "err", err)
	}
}

// accepted ends the delay of lists.
func (p *poller) accepted() { p.retry, p.backoff = time.Time{}, listBackoff() }

// busyLimit is how long a namespace counts as busy after the last change of a source in it, as long as a rollout may take by default.
const busyLimit = 15 * time.Minute

// busyNamespace is a namespace in which a source has changed.
type busyNamespace struct {
	next, until time.Time
	pause       time.Duration
	seen        contents
}

// contents differ between two lists of a namespace if any workload has changed, because every write has a newer resourceVersion.
type contents struct {
	newest string
	count  int
}

// takeAsked marks the requested namespaces as busy. A namespace that has just been listed is listed again after busyInterval.
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

// listed records a list of a busy namespace. While nothing changes there, the interval grows.
func (p *poller) listed(namespace string, b *busyNamespace, seen contents, now time.Time) {
	if b.pause *= 2; seen != b.seen {
		b.pause = busyInterval
	}
	b.seen, b.next = seen, now.Add(b.pause)
	if b.pause >= quietInterval || now.After(b.until) {
		delete(p.busy, namespace)
	}
}

// contentsOf returns the contents of one namespace in a list.
func contentsOf(workloads []*workload.Workload, namespace string) contents {
	var c contents
	for _, w := range workloads {
		if w.ID.Namespace != namespace {
			continue
		}
		c.count++
		if c.newest == "" || events.Newer(w.Version, c.newest) {
			c.newest = w.Version
		}
	}
	return c
}
