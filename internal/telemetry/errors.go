package telemetry

import "errors"

// ErrStopTimeout is wrapped by the error of Stack.Stop when a step did not return in its time and was left behind.
var ErrStopTimeout = errors.New("not stopped in time")
