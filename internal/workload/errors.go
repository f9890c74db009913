package workload

import "errors"

var (
	// ErrUnrecorded is returned if what a patch writes on a workload could not be written, because there is no permission for that, or because it
	// is refused after a Job was started. Everything else that the patch does was done. The workload that is returned with the error is as the
	// patch would have made it.
	ErrUnrecorded = errors.New("not recorded on the workload")
	// ErrStripped is returned if the API server accepts a patch without what has pods replaced.
	ErrStripped = errors.New("the response lacks what the patch wrote")
	// ErrUnstarted is returned with Clients.Unrecorded if there is no permission to create Jobs: nobody is expected to grant it.
	ErrUnstarted = errors.New("no job is started")
	// ErrNameTaken is returned if a Job that is to be created needs the name of one that is there for something else.
	ErrNameTaken = errors.New("the name is taken by another job")
)
