package openbao

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/telemetry"
)

const (
	// maxMountFailures is the maximum number of mounts whose failures are remembered and logged within mountFailureAge, for audit lines and for
	// references separately. Anyone who can send lines or write ExternalSecrets can invent mounts.
	maxMountFailures = 256
	mountFailureAge  = time.Hour
	// foreignAge is the time without foreign text after which the next one is logged again.
	foreignAge = time.Hour
	// auditedPaths is the subject of failures to read paths from the audit log.
	auditedPaths = "audited paths"
	// referencedPaths is the subject of failures to poll by reference.
	referencedPaths = "referenced paths"
)

// auditedIn returns the subject of failures to read paths of a mount from the audit log.
func auditedIn(mount string) string { return auditedPaths + " of " + mount }

// oneSegment escapes the path of a mount for use as one segment of another.
var oneSegment = strings.NewReplacer("%", "%25", "/", "%2F")

// partOf returns the subject of failures to read a part of a mount. It is unique to the mount.
func partOf(name mountName) string {
	return "part of " + childNamespace(name.namespace, oneSegment.Replace(name.mount))
}

// named contains the times of noted failures of mounts that others name, by subject.
type named map[string]time.Time

// status is the health of a store. It logs each failure once, and provides the gauges.
type status struct {
	log *slog.Logger
	now func() time.Time

	mu                  sync.Mutex
	failures            map[string][]error // by subject, until the subject can be read again
	audited, referenced named
	tried               bool      // a poll was complete or has failed in part
	polledAt            time.Time // zero before the first complete poll
	lineAt              time.Time // of the last audit line; before the first one, of the start if lines are expected
	foreignAt           time.Time // when foreign text was last received
	lags                sync.Once // logs once that the store lags behind
}

func newStatus(log *slog.Logger, now func() time.Time) *status {
	return &status{log: log, now: now, failures: map[string][]error{}, audited: named{}, referenced: named{}}
}

// noteFailure records that reading the subject failed, with one error or several. It logs the errors whose kind was not among the last ones. The
// number of subjects is limited by the configuration.
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

// noteNamedFailure is noteFailure for a mount that an audit line or a reference names. If there are too many, it forgets old ones, or else ignores
// the failure.
func (s *status) noteNamedFailure(ctx context.Context, among named, subject string, errs ...error) {
	s.mu.Lock()
	_, known := among[subject]
	for other, noted := range among {
		if !known && len(among) >= maxMountFailures && s.now().Sub(noted) >= mountFailureAge {
			delete(among, other)
			delete(s.failures, other)
		}
	}
	hasRoom := known || len(among) < maxMountFailures
	if hasRoom {
		among[subject] = s.now()
	}
	s.mu.Unlock()
	if hasRoom {
		s.noteFailure(ctx, subject, errs...)
	}
}

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

func (s *status) notePoll(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polledAt, s.tried = at, true
}

func (s *status) noteFailedPoll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = true
}

// noteLine records that a line arrived, or that lines may arrive from now on.
func (s *status) noteLine(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineAt = at
}

// noteLag logs, once, that the store has answered without a version that was written longer ago than the configured lag.
func (s *status) noteLag(ctx context.Context, behind, declared time.Duration) {
	s.lags.Do(func() {
		s.log.WarnContext(ctx, "store answers without a version that its audit log has; set its lag in the configuration",
			"behind", behind, "lag", declared)
	})
}

// noteForeign records that foreign text arrived, and logs it unless some arrived within foreignAge. It logs nothing of the content, which may be
// secret.
func (s *status) noteForeign(ctx context.Context) {
	s.mu.Lock()
	now, last := s.now(), s.foreignAt
	s.foreignAt = now
	s.mu.Unlock()
	if now.Sub(last) >= foreignAge {
		s.log.WarnContext(ctx, "audit receiver got a line that is not of an audit log")
	}
}

func (s *status) lastSeen() (polledAt, lineAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polledAt, s.lineAt
}

// unpolled returns nil after the first complete poll, or after one that failed because of the store. Otherwise, it returns an error that names what
// is missing, such as the permission to list references. Later, a missing permission is only logged.
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

type metrics struct {
	auditLines, polls       metric.Int64Counter
	lastPoll, lastAuditLine metric.Int64ObservableGauge
}

// instruments defines every metric. The label store has one value for each configured store.
func (m *metrics) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Counter(&m.auditLines, "keyturn.openbao.audit.lines", "{line}",
			"Lines of a store's audit log, by how they were handled.", "store", "result"),
		telemetry.Counter(&m.polls, "keyturn.openbao.polls", "{poll}",
			"Polls of a store's metadata, by result: success or failure.", "store", "result"),
		telemetry.Gauge(&m.lastPoll, "keyturn.openbao.poll.last", "s",
			"Time of the last successful poll of a store, in seconds since 1970.", "store"),
		telemetry.Gauge(&m.lastAuditLine, "keyturn.openbao.audit.last", "s",
			"Time of the last line received from a store's audit log, or of the start before the first one, in seconds since 1970. "+
				"Absent for a store that has no audit token here.", "store"),
	}
}

// Instruments returns the definitions of the metrics of secret stores.
func Instruments() []telemetry.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, telemetry.MakeInstruments(meter, m.instruments())
}

// watch reports the last poll and the last audit line of each store, by name. It omits stores without either.
func (m *metrics) watch(meter metric.Meter, statuses map[string]*status) error {
	_, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		for store, s := range statuses {
			label := metric.WithAttributes(attribute.String("store", store))
			polledAt, lineAt := s.lastSeen()
			if !polledAt.IsZero() {
				observer.ObserveInt64(m.lastPoll, polledAt.Unix(), label)
			}
			if !lineAt.IsZero() {
				observer.ObserveInt64(m.lastAuditLine, lineAt.Unix(), label)
			}
		}
		return nil
	}, m.lastPoll, m.lastAuditLine)
	return err
}

func (m *metrics) countLine(ctx context.Context, store string, result verdict) {
	m.auditLines.Add(ctx, 1, metric.WithAttributes(attribute.String("store", store), attribute.String("result", string(result))))
}

func (m *metrics) countPoll(ctx context.Context, store, result string) {
	m.polls.Add(ctx, 1, metric.WithAttributes(attribute.String("store", store), attribute.String("result", result)))
}
