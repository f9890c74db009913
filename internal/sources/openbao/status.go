package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxMountFailures is the maximum number of mounts whose failures are remembered and logged within mountFailureAge, for audit lines and for
	// references separately. Anyone who can send lines or write ExternalSecrets can invent mounts.
	maxMountFailures = 256
	mountFailureAge  = time.Hour
	// auditedPaths is the subject of failures to read what the audit log names.
	auditedPaths = "audited paths"
	// referencedPaths is the subject of failures to poll by reference.
	referencedPaths = "referenced paths"
)

// auditedIn returns the subject of failures to read what the audit log names in a mount.
func auditedIn(mount string) string { return auditedPaths + " of " + mount }

// oneSegment escapes the path of a mount for use as one segment of another.
var oneSegment = strings.NewReplacer("%", "%25", "/", "%2F")

// partOf returns the subject of failures to read a part of a mount. No two mounts have the same.
func partOf(name mountName) string {
	return "part of " + childNamespace(name.namespace, oneSegment.Replace(name.mount))
}

// named has the times at which failures of mounts that others name were noted, by subject.
type named map[string]time.Time

// status is the health of a store. It logs each failure once, and the gauges report it.
type status struct {
	log *slog.Logger
	now func() time.Time

	mu                  sync.Mutex
	failures            map[string][]error // by subject, until reading it works again
	audited, referenced named
	tried               bool      // a poll was complete, or a part of one failed
	polledAt            time.Time // zero before the first complete poll
	lineAt              time.Time // of the last audit line; before the first one, of the start if lines are expected
}

func newStatus(log *slog.Logger, now func() time.Time) *status {
	return &status{log: log, now: now, failures: map[string][]error{}, audited: named{}, referenced: named{}}
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

// noteNamedFailure is noteFailure for a mount that an audit line or a reference names. It ignores the failure if there are too many among them.
func (s *status) noteNamedFailure(ctx context.Context, among named, subject string, errs ...error) {
	if s.remember(among, subject) {
		s.noteFailure(ctx, subject, errs...)
	}
}

// remember reports whether there is room for the subject. It makes room by forgetting old ones.
func (s *status) remember(among named, subject string) bool {
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

// noteLine records that an audit line arrived, or that lines may arrive from now on.
func (s *status) noteLine(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineAt = at
}

// lastSeen returns the times of the last complete poll and of the last line, or zero.
func (s *status) lastSeen() (polledAt, lineAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polledAt, s.lineAt
}

// unpolled returns nil after a poll was complete, or after the first one failed because of the store. Otherwise it returns an error that says what is
// missing, such as the permission to list the references. Later, a missing permission is only logged.
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
