package workload

import "errors"

var (
	// ErrUnrecorded is returned if there is no permission to write on a workload what a patch writes. All else that the patch does was
	// done, and what is returned with the error is the workload as the patch would have made it.
	ErrUnrecorded = errors.New("not recorded on the workload")
	// ErrUnstarted is returned if there is no permission to create Jobs, and with Clients.Unrecorded nobody is waited for to grant it.
	ErrUnstarted = errors.New("no job is started")
)
