package workload

import "errors"

var (
	// ErrUnrecorded is returned if the workload could not be patched, because permission is missing, or because the API server refused the patch
	// after a Job was started. Everything else was done. The workload that comes with it is as the patch would have made it.
	ErrUnrecorded = errors.New("not recorded on the workload")
	// ErrStripped is returned if the API server accepted a patch, but dropped the part that causes pods to be replaced.
	ErrStripped = errors.New("the response lacks what the patch wrote")
	// ErrUnstarted is returned with Clients.Unrecorded if there is no permission to create Jobs, which such installations need not grant.
	ErrUnstarted = errors.New("no job is started")
	// ErrNameTaken is returned if an unrelated Job already has the name of a Job that is to be created.
	ErrNameTaken = errors.New("the name is taken by another job")
)
