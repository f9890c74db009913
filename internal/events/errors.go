package events

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

var (
	// ErrConflict is wrapped by the error of Bus.PublishChange if the last event on the subject is not the expected one:
	// another watcher of the cluster was faster. Read the subject with Bus.Last and compare again.
	ErrConflict = errors.New("another event was published on this subject")
	// ErrNotFound is wrapped by the error of Bus.Last if the stream has no event on the subject.
	ErrNotFound = errors.New("no event on this subject")
	// ErrClaimed is wrapped by the errors of Bus.Claim and Bus.CheckClaim if another cluster has the name.
	ErrClaimed = errors.New("cluster name is already claimed")
	// ErrRedelivered finishes a delivery whose event has been delivered again since. The later delivery answers for both.
	ErrRedelivered = errors.New("the event was delivered again")
)

// errUnasked means that a consumer has messages but no request for them. A request is lost if it reaches a server of a cluster before that server
// has learned of the consumer, which is on another server. The server answers that there are no responders, and the iterator ignores that answer.
var errUnasked = errors.New("the consumer was not asked for its messages")

// errLost is the error of a reading whose consumer was lost with its server, or whose messages were lost on their way.
var errLost = fmt.Errorf("the consumer is silent, and messages are missing: %w", nats.ErrTimeout)

var (
	// errOtherStream means that the stream is not as a Follower left it: it was restored or created again, or messages were removed.
	errOtherStream = errors.New("the stream has lost events")
	// errReconnected means that a Follower may have missed events while it had no connection.
	errReconnected = errors.New("the connection was lost")
)

// errHeadersOnly finishes a delivery without data, which means that someone has configured the consumer to send only headers. The event is
// redelivered when the consumer has been repaired.
var errHeadersOnly = errors.New("the consumer sends headers only")

// errNotStored is the ErrConflict for a subject that has no event.
var errNotStored = fmt.Errorf("%w, and is gone", ErrConflict)

var (
	// errStream is wrapped by the errors of Open and Bus.Consume: a stream is missing, or a field of it is wrong.
	errStream = errors.New("stream is not declared as required")
	// errConsumer is wrapped by the errors of Bus.Consume: a field of the durable consumer is wrong, and the server rejects
	// changing it.
	errConsumer = errors.New("consumer is not declared as required")
	// errFound ends a reading early.
	errFound = errors.New("found")
)

// The reasons why an attribute cannot be written or read. None quotes the value.
var (
	errBlank     = errors.New("empty, or with space around it")
	errCanonical = errors.New("not a URI in its canonical form")
	errTime      = errors.New("not a time of RFC 3339")
	errMediaType = errors.New("not a media type of RFC 2046")
	errName      = errors.New("the name has characters other than lower-case letters and digits")
	errPercent   = errors.New("not percent-encoded")
	errText      = errors.New("not text that a CloudEvents attribute can hold")
)

// The reasons for which an event is rejected before a handler sees it. They are the values of a metric label and of the
// Keyturn-Reason header of dead letters.
const (
	// ReasonMalformed means that the message is not a CloudEvent, or is one that this package cannot have written.
	ReasonMalformed = "malformed"
	// ReasonStructured means that the CloudEvent is in structured mode. Only binary mode is accepted.
	ReasonStructured = "structured-mode"
	// ReasonOversized means that the data exceeds MaxEventSize, or the header MaxHeaderSize.
	ReasonOversized = "oversized"
	// ReasonForeignCluster means that the event is of another cluster.
	ReasonForeignCluster = "foreign-cluster"
	// ReasonUnknownVersion means that the version of the subject, the type or the CloudEvents specification is unknown.
	ReasonUnknownVersion = "unknown-version"
	// ReasonUnknownType means that the event type is unknown, or not expected on this stream.
	ReasonUnknownType = "unknown-type"
	// ReasonSubjectMismatch means that the event is about another object than its subject names.
	ReasonSubjectMismatch = "subject-mismatch"
)

// ReasonWebhookFailed means that a handler rejects an event because the webhook that is called for it has failed for too long.
const ReasonWebhookFailed = "webhook-failed"

// ReasonReloadedInPlace is the reason of an outcome whose pods were not replaced, but answered a reload request with a 2xx status.
const ReasonReloadedInPlace = "reloaded-in-place"

// ReasonPatchDenied is the reason of an outcome whose patch the API server denies.
const ReasonPatchDenied = "patch-denied"

// RejectError means that an event must never be acted on. Delivery.Done terminates such an event and publishes a dead
// letter with the reason and the text of the error, which therefore must not quote the event's data.
type RejectError struct {
	// Reason is a short kebab-case word for the metric label and the dead letter: a Reason constant, or the handler's own.
	Reason string
	Err    error
}

// Error returns the reason and the text of Err.
func (e *RejectError) Error() string { return e.Reason + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *RejectError) Unwrap() error { return e.Err }

func rejectf(reason, format string, args ...any) error {
	return &RejectError{Reason: reason, Err: fmt.Errorf(format, args...)}
}
