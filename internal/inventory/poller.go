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
)

const (
	// busyInterval is how often a namespace is listed in which something has just changed. quietInterval is how often everything is listed.
	busyInterval  = 2 * time.Second
	quietInterval = 30 * time.Second
	// manyNamespaces is how many namespaces are listed one by one at a time at most. For more, one list of everything costs less.
	manyNamespaces = 8
)

// listBackoff returns the delays between lists that the API server refuses. While it does, it is asked no more often than in an idle cluster.
func listBackoff() wait.Backoff {
	return wait.Backoff{Duration: busyInterval, Factor: 2, Jitter: 0.2, Steps: math.MaxInt, Cap: quietInterval}
}

// lister lists the workloads of a kind in a namespace, or in all of them.
type lister func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error)

// poller keeps a store equal to the API server without a watch. It lists a namespace when a source has changed there, and again for as long as
// that changes its workloads; what else happens is seen every quietInterval. So an idle cluster costs a list of everything that the API server
// has in its memory twice a minute, and a change is acted on within about busyInterval. A list that is refused delays all others.
type poller struct {
	store *kindStore
	list  lister
	log   *slog.Logger
	now   func() time.Time
	wake  chan struct{}

	mu    sync.Mutex
	asked map[string]struct{}

	// The rest belongs to run.
	busy map[string]*busyNamespace
	// next is when everything is listed.
	next time.Time
	// retry is when the next list may be asked for after one that was refused, zero if the last one was not. Backoff has the delays.
	retry   time.Time
	backoff wait.Backoff
}

func newPoller(store *kindStore, list lister, log *slog.Logger, now func() time.Time) *poller {
	return &poller{
		store: store, list: list, log: log, now: now, wake: make(chan struct{}, 1), asked: make(map[string]struct{}),
		busy: make(map[string]*busyNamespace), backoff: listBackoff(),
	}
}

// look makes the workloads of a namespace be listed soon. It does not block.
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

// run lists until the context is done. Call it just after the contents of the store were listed. It may be called again: busy namespaces stay busy.
func (p *poller) run(ctx context.Context) {
	p.next = p.now().Add(quietInterval)
	p.accepted()
	timer := time.NewTimer(p.pause())
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

// pass lists what is due, and returns the time until something is due again.
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

// pause returns the time until something is due.
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

// listAll takes a list of everything, from the memory of the API server. One that is older than what is known is dropped.
func (p *poller) listAll(ctx context.Context, now time.Time) {
	items, version := p.read(ctx, p.store.namespace, metav1.ListOptions{ResourceVersion: "0"})
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
	_ = p.store.Replace(items, version) // It never fails.
	for namespace, b := range p.busy {
		p.listed(namespace, b, contentsOf(items, namespace), now)
	}
}

// listOne takes a list of one namespace. It returns false if it was refused.
func (p *poller) listOne(ctx context.Context, namespace string, now time.Time) bool {
	items, version := p.read(ctx, namespace, metav1.ListOptions{})
	if version == "" {
		return false
	}
	part := &kindStore{Index: p.store.Index, kind: p.store.kind, namespace: namespace, synced: func() {}, seen: p.store.seen}
	_ = part.Replace(items, version) // It never fails.
	p.listed(namespace, p.busy[namespace], contentsOf(items, namespace), now)
	return true
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
	if err == nil && version == "" {
		err = errors.New("the list has no resourceVersion")
	}
	if err != nil {
		p.refused(ctx, namespace, err)
		return nil, ""
	}
	p.accepted()
	items = make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, object)
	}
	return items, version
}

// refused delays all lists, longer each time. It logs the first of several refusals.
func (p *poller) refused(ctx context.Context, namespace string, err error) {
	delay, isFirst := p.backoff.Step(), p.retry.IsZero()
	p.retry = p.now().Add(delay)
	if isFirst && ctx.Err() == nil {
		p.log.WarnContext(ctx, "cannot list workloads; retrying with backoff", "resource", kindScope(p.store.kind, namespace), "retry_in", delay,
			"max_retry_in", quietInterval, "err", err)
	}
}

// accepted ends the delay of lists.
func (p *poller) accepted() { p.retry, p.backoff = time.Time{}, listBackoff() }
