package program

import "errors"

// errStopTimeout means that a step of the shutdown did not return in time and was abandoned.
var errStopTimeout = errors.New("not stopped in time")
