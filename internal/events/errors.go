package events

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrConflict is returned by Bus.PublishChange when the subject's last event is not the one the caller expected:
	// another watcher of the same cluster was faster. Read it again with Bus.Last and compare.
	ErrConflict = errors.New("another event was published on this subject")
	// ErrNotFound is returned by Bus.Last when the stream knows nothing on the subject.
	ErrNotFound = errors.New("no event on this subject")
	// ErrStream is wrapped by the errors of Open: a stream is missing or is not declared as it must be.
	ErrStream = errors.New("stream is not as it must be")
	// ErrClaimed is wrapped by the errors of Bus.Claim and Bus.CheckClaim: another cluster has the name.
	ErrClaimed = errors.New("the name of the cluster is taken")
	// ErrConsumer is wrapped by the errors of Bus.Consume: the durable consumer is not declared as it must be, and could
	// not be changed.
	ErrConsumer = errors.New("consumer is not as it must be")
)

// The reasons for which an event is refused before a handler sees it. They are labels of a metric and values of the
// Keyturn-Reason header of dead letters.
const (
	// ReasonMalformed says that the message is not a CloudEvent, or not one that our codec could have written.
	ReasonMalformed = "malformed"
	// ReasonStructured says that the CloudEvent is in structured mode. Only binary mode is read.
	ReasonStructured = "structured-mode"
	// ReasonOversized says that the data exceeds MaxEventSize, or the header MaxHeaderSize.
	ReasonOversized = "oversized"
	// ReasonForeignCluster says that the event is of another cluster than the program.
	ReasonForeignCluster = "foreign-cluster"
	// ReasonUnknownVersion says that the subject, the type or the CloudEvents specversion has a version that is not known.
	ReasonUnknownVersion = "unknown-version"
	// ReasonUnknownType says that the type is not one of ours, or not one that is expected here.
	ReasonUnknownType = "unknown-type"
	// ReasonSubjectMismatch says that the event's attributes name another object than the subject it was published on.
	ReasonSubjectMismatch = "subject-mismatch"
)

// ReasonPatchDenied is the reason why a handler rejects an event: the API server refuses the patch that the event asks for.
const ReasonPatchDenied = "patch-denied"

// RejectError says that an event must never be acted on: it goes to the dead-letter subject with the reason, and is
// terminated. Its text goes with it, so it must not quote the event's data.
type RejectError struct {
	// Reason is a short kebab-case word for the metric label and the dead letter: one of the Reason constants, or a
	// handler's own.
	Reason string
	Err    error
}

func (e *RejectError) Error() string { return e.Reason + ": " + e.Err.Error() }

func (e *RejectError) Unwrap() error { return e.Err }

func rejectf(reason, format string, args ...any) error {
	return &RejectError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// RetryError says that an event must be delivered again, not before After has passed.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return e.Err.Error() }

func (e *RetryError) Unwrap() error { return e.Err }
