package openbao

import (
	"context"
	"time"
)

// sharedReferences lists references once for all stores that are polled at about the same time. It is safe for concurrent use.
type sharedReferences struct {
	read func(ctx context.Context) ([]Reference, error)
	now  func() time.Time

	lock chan struct{} // has one element while the fields below are in use
	last []Reference
	at   time.Time // when last was read; zero: never
}

func newSharedReferences(read func(context.Context) ([]Reference, error), now func() time.Time) *sharedReferences {
	return &sharedReferences{read: read, now: now, lock: make(chan struct{}, 1)}
}

// list returns the references as they were at most age ago. The caller must not change them.
func (s *sharedReferences) list(ctx context.Context, age time.Duration) ([]Reference, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	began := s.now()
	if !s.at.IsZero() && began.Sub(s.at) < age {
		return s.last, nil
	}
	listed, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	s.last, s.at = listed, began
	return listed, nil
}
