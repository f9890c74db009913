package openbao

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxFailures bounds the subjects whose failures are remembered. Further ones are not logged.
	maxFailures = 256
	// auditHints is the subject of failures to read what the audit log hints at.
	auditHints = "audit hints"
)

// status is the health of a store: it logs each failure once, and the gauges report from it.
type status struct {
	log *slog.Logger

	mu       sync.Mutex
	failures map[string]error // by subject, until it works again
	tried    bool             // a poll was complete, or a part of one failed
	polledAt time.Time        // zero before the first complete poll
	lineAt   time.Time        // zero before the first audit line
}

func newStatus(log *slog.Logger) *status { return &status{log: log, failures: map[string]error{}} }

// noteFailure records that reading the subject failed. It logs the first failure of each kind.
func (s *status) noteFailure(ctx context.Context, subject string, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	before := s.failures[subject]
	room := before != nil || len(s.failures) < maxFailures
	if room {
		s.failures[subject] = err
	}
	s.mu.Unlock()
	if room && (before == nil || kind(before) != kind(err)) {
		s.log.WarnContext(ctx, "store cannot be read", "for", subject, "reason", kind(err), "err", err)
	}
}

// noteSuccess records that reading the subject works.
func (s *status) noteSuccess(ctx context.Context, subject string) {
	s.mu.Lock()
	before := s.failures[subject]
	delete(s.failures, subject)
	s.mu.Unlock()
	if before != nil {
		s.log.InfoContext(ctx, "store can be read again", "for", subject)
	}
}

// notePoll records a complete poll.
func (s *status) notePoll(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polledAt, s.tried = at, true
}

// noteFailedPoll records that a part of a poll failed.
func (s *status) noteFailedPoll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = true
}

// noteLine records that an audit line arrived.
func (s *status) noteLine(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineAt = at
}

// lastSeen returns when the last complete poll and the last audit line were, zero if there was none.
func (s *status) lastSeen() (polledAt, lineAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polledAt, s.lineAt
}

// wasPolled reports whether the first poll was complete, or has failed.
func (s *status) wasPolled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}
