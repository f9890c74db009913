package kube

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// FirstLists are the resources of which a program must have had one list before it knows enough to act. It is safe for concurrent use.
type FirstLists struct {
	mu sync.Mutex
	// waiting has why a resource is not listed yet, nil if it is being listed. It is gone once it is listed.
	waiting map[string]error
	done    chan struct{}
}

// NewFirstLists returns those of no resources.
func NewFirstLists() *FirstLists {
	return &FirstLists{waiting: make(map[string]error), done: make(chan struct{})}
}

// Expect adds a resource, as Scope names it. Call it before the first one is listed.
func (l *FirstLists) Expect(where string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[where] = nil
}

// Deny takes note of why a resource cannot be listed.
func (l *FirstLists) Deny(where string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waiting := l.waiting[where]; waiting {
		l.waiting[where] = err
	}
}

// Listed takes note of a list of a resource, the first one or a later one.
func (l *FirstLists) Listed(where string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waiting := l.waiting[where]; !waiting {
		return
	}
	delete(l.waiting, where)
	if len(l.waiting) == 0 {
		close(l.done)
	}
}

// Done is closed when each resource was listed once.
func (l *FirstLists) Done() <-chan struct{} { return l.done }

// Ready returns nil when each resource was listed once; else it says what is missing: a permission, if one is.
func (l *FirstLists) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := slices.Sorted(maps.Keys(l.waiting))
	for _, where := range left {
		if err := l.waiting[where]; err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("the first list of %s is not complete", left[0])
	}
	return nil
}
