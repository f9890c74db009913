package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// status is how the store is doing: what is logged once, what Ready tells, and what the gauges show.
type status struct {
	mu        sync.Mutex
	failures  map[string]error // by what failed, until it works again
	polledAt  time.Time        // zero before the first
	heardAt   time.Time
	succeeded bool
}

// maxFailures is how many things that fail are told apart. Further ones are not told.
const maxFailures = 256

// failed is told that something failed. It is logged where it has not failed in this way before.
func (s *status) failed(ctx context.Context, log *slog.Logger, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	before := s.failures[what]
	room := before != nil || len(s.failures) < maxFailures
	if s.failures == nil {
		s.failures = map[string]error{}
	}
	if room {
		s.failures[what] = err
	}
	s.mu.Unlock()
	if !room {
		return
	}
	if before == nil || kind(before) != kind(err) {
		log.WarnContext(ctx, "store cannot be read", "for", what, "reason", kind(err), "err", err)
	}
}

// worked is told that something worked.
func (s *status) worked(ctx context.Context, log *slog.Logger, what string) {
	s.mu.Lock()
	before := s.failures[what]
	delete(s.failures, what)
	s.mu.Unlock()
	if before != nil {
		log.InfoContext(ctx, "store can be read again", "for", what)
	}
}

// polled is told that all that can be polled was polled.
func (s *status) polled(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.succeeded, s.polledAt = true, at
}

// heard is told that the store's audit came through.
func (s *status) heard(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heardAt = at
}

// times are those of the last poll that worked and of the last line of the audit, zero where there was none.
func (s *status) times() (polledAt, heardAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polledAt, s.heardAt
}

// ready is nil when all was polled once.
func (s *status) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.succeeded {
		return nil
	}
	var missing []string
	for what, err := range s.failures {
		if !strings.HasPrefix(what, hinted) {
			missing = append(missing, fmt.Sprintf("%s: %v", what, err))
		}
	}
	if len(missing) == 0 {
		return errors.New("has not been polled yet")
	}
	slices.Sort(missing)
	return errors.New(strings.Join(missing, "; "))
}
