package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNotPolled means that the first poll of a store has not ended.
var errNotPolled = errors.New("not polled yet")

const (
	// maxMountFailures is the maximum number of mounts whose failures are remembered and logged within mountFailureAge, for audit lines and for
	// references separately. Whoever can send lines or write ExternalSecrets can invent mounts.
	maxMountFailures = 256
	mountFailureAge  = time.Hour
	// auditedPaths is the subject of failures to read what the audit log names.
	auditedPaths = "audited paths"
	// referencedPaths is the subject of failures to poll by reference.
	referencedPaths = "referenced paths"
)

// status is the health of a store. It logs each failure once, and the gauges report it.
type status struct {
	log *slog.Logger
	now func() time.Time

	mu         sync.Mutex
	failures   map[string][]error   // by subject, until reading it works again
	audited    map[string]time.Time // when the failures of mounts in audit lines were noted, by subject
	referenced map[string]time.Time // when the failures of mounts in references were noted, by subject
	tried      bool                 // a poll was complete, or a part of one failed
	polledAt   time.Time            // zero before the first complete poll
	lineAt     time.Time            // of the last audit line, or of expectLines before the first one
}

func newStatus(log *slog.Logger, now func() time.Time) *status {
	return &status{log: log, now: now, failures: map[string][]error{}, audited: map[string]time.Time{}, referenced: map[string]time.Time{}}
}

// noteFailure records that reading the subject failed, with one error or several. It logs the errors of each kind that was not among the last ones.
// The number of subjects is bounded by the configuration.
func (s *status) noteFailure(ctx context.Context, subject string, errs ...error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	before := s.failures[subject]
	s.failures[subject] = errs
	s.mu.Unlock()
	for _, err := range errs {
		if !hasKindOf(before, err) {
			s.log.WarnContext(ctx, "store cannot be read", "for", subject, "reason", kind(err), "err", err)
		}
	}
}

// noteAuditFailure is noteFailure for a mount that an audit line names. It ignores the failure if there are too many.
func (s *status) noteAuditFailure(ctx context.Context, mount string, err error) {
	if subject := auditedIn(mount); s.remember(s.audited, subject) {
		s.noteFailure(ctx, subject, err)
	}
}

// noteReferenceFailure is noteFailure for a mount that a reference names. It ignores the failure if there are too many.
func (s *status) noteReferenceFailure(ctx context.Context, subject string, errs ...error) {
	if s.remember(s.referenced, subject) {
		s.noteFailure(ctx, subject, errs...)
	}
}

func auditedIn(mount string) string { return auditedPaths + " of " + mount }

// remember reports whether there is room for the failure of a mount among those that are named in the same way. It makes room by forgetting old
// ones.
func (s *status) remember(among map[string]time.Time, subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := among[subject]; !known && len(among) >= maxMountFailures {
		for other, noted := range among {
			if s.now().Sub(noted) >= mountFailureAge {
				delete(among, other)
				delete(s.failures, other)
			}
		}
		if len(among) >= maxMountFailures {
			return false
		}
	}
	among[subject] = s.now()
	return true
}

// noteSuccess records that reading the subject works.
func (s *status) noteSuccess(ctx context.Context, subject string) {
	s.mu.Lock()
	before := s.failures[subject]
	delete(s.failures, subject)
	delete(s.audited, subject)
	delete(s.referenced, subject)
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

// expectLines records that audit lines may arrive from now on. If none ever does, the store has been silent since then.
func (s *status) expectLines() { s.noteLine(s.now()) }

// noteLine records that an audit line arrived.
func (s *status) noteLine(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineAt = at
}

// lastSeen returns the times of the last complete poll, or zero if there was none, and of the last audit line. Before the first line, that is the
// time of expectLines, or zero if none is expected.
func (s *status) lastSeen() (polledAt, lineAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polledAt, s.lineAt
}

// unpolled returns nil once a poll was complete, or once the first one has failed because of the store. Otherwise it returns an error that says
// what is missing, such as the permission to list the references. Later, a missing permission is only logged.
func (s *status) unpolled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch err := errors.Join(s.failures[referencedPaths]...); {
	case !s.polledAt.IsZero():
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w", referencedPaths, err)
	case !s.tried:
		return errNotPolled
	}
	return nil
}
