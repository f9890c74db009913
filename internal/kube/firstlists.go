package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// FirstLists tracks the resources that a program must have listed once before it knows enough to act. It is safe for concurrent use.
type FirstLists struct {
	mu      sync.Mutex
	waiting map[string]error // the resources that were not listed yet, with the error, or nil while the list is in progress
	done    chan struct{}
}

// NewFirstLists returns a FirstLists without resources.
func NewFirstLists() *FirstLists {
	return &FirstLists{waiting: make(map[string]error), done: make(chan struct{})}
}

// Expect adds a resource, with a name from Scope. It must be called before any resource is listed.
func (l *FirstLists) Expect(where string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[where] = nil
}

// Deny records why a resource cannot be listed.
func (l *FirstLists) Deny(where string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waiting := l.waiting[where]; waiting {
		l.waiting[where] = err
	}
}

// Check logs that the permission to list and watch a resource is missing, and makes Ready report it, if that is the error. Manifest grants it.
func (l *FirstLists) Check(ctx context.Context, log *slog.Logger, where, manifest string, err error) {
	if missing := MissingPermission(where, manifest, err); missing != nil {
		l.Deny(where, missing)
		log.ErrorContext(ctx, "permission missing", "resource", where, "err", missing)
	}
}

// Listed records that a resource was listed, for the first time or again.
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

// Done returns a channel that is closed when each resource has been listed once.
func (l *FirstLists) Done() <-chan struct{} { return l.done }

// Ready returns nil once each resource has been listed. Until then, its error names what is missing; a missing permission comes first.
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
		return fmt.Errorf("still listing %s for the first time", left[0])
	}
	return nil
}
