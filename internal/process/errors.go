package process

import "errors"

// errStopTimeout means that a step of the end did not return in its time and was abandoned.
var errStopTimeout = errors.New("not stopped in time")
