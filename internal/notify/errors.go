package notify

import "errors"

// errRefused is wrapped by the error of a message that the service refused, and would refuse again.
var errRefused = errors.New("refused")
