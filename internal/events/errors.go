package events

import (
	"errors"
	"fmt"
)

// ErrNotFound is wrapped by the errors of Bus.Last and Origins.Last if the stream has no event on the subject.
var ErrNotFound = errors.New("no event on this subject")

// These are the reasons why an attribute cannot be written or read. They do not quote the value.
var (
	errBlank     = errors.New("empty, or with space around it")
	errSource    = errors.New("not " + sourceScheme + "<cluster>/<program>")
	errTime      = errors.New("not a time of RFC 3339")
	errMediaType = errors.New("not " + jsonContentType)
	errPercent   = errors.New("not percent-encoded")
	errText      = errors.New("not text that a CloudEvents attribute can hold")
)

// These are the reasons for rejecting an event before a handler sees it. They are in a metric label and in dead letters.
const (
	ReasonMalformed = "malformed" // the message is not a CloudEvent, or is one that this package cannot have written
	// ReasonStructured means that the CloudEvent is in structured mode. Only binary mode is accepted.
	ReasonStructured      = "structured-mode"
	ReasonOversized       = "oversized"        // the data exceeds MaxEventSize, or the header MaxHeaderSize
	ReasonForeignCluster  = "foreign-cluster"  // the event is of another cluster
	ReasonUnknownVersion  = "unknown-version"  // the version of the subject, the type or the CloudEvents specification is unknown
	ReasonUnknownType     = "unknown-type"     // the event type is unknown, or not expected on this stream
	ReasonSubjectMismatch = "subject-mismatch" // the event is not about the object in its subject
)

// These are reasons of handlers that other programs know.
const (
	ReasonWebhookFailed   = "webhook-failed"    // of a rejection: the webhook for the event has failed for too long
	ReasonReloadedInPlace = "reloaded-in-place" // of an outcome: the pods were not replaced, but answered a reload request with a 2xx status
	ReasonPatchDenied     = "patch-denied"      // of an outcome: the API server denies the patch
)

// RejectError means that an event must never be acted on. Delivery.Done terminates such an event and publishes a dead letter with the reason and the
// text of the error, which must therefore not quote the event's data.
type RejectError struct {
	Reason string // a short kebab-case word for the metric label and the dead letter: a Reason constant, or the handler's own
	Err    error
}

// Error returns the reason and the text of Err.
func (e *RejectError) Error() string { return e.Reason + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *RejectError) Unwrap() error { return e.Err }

// Rejectf returns a RejectError with a formatted text.
func Rejectf(reason, format string, args ...any) error {
	return &RejectError{Reason: reason, Err: fmt.Errorf(format, args...)}
}
