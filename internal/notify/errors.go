package notify

import (
	"errors"
	"time"
)

// errRefused is wrapped by the error of a message that the service refused, and would refuse again.
var errRefused = errors.New("refused")

// errParked means that a message is to be sent again later.
var errParked = errors.New("parked")

// retryAfterError is the error for a response that says when the service will accept messages again.
type retryAfterError struct {
	after time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return e.err.Error() }

func (e *retryAfterError) Unwrap() error { return e.err }
