package inplace

import "errors"

var (
	// ErrStarting is returned if a pod that is not ready yet did not confirm.
	ErrStarting = errors.New("it is not ready")
	// ErrNotListed is returned if the pods could not be listed, but another attempt may succeed.
	ErrNotListed = errors.New("listing pods")

	errOthers     = errors.New("all pods with its labels are of ReplicaSets that are named for another Deployment")
	errAddress    = errors.New("it has no address of its own that a pod can have")
	errTimeout    = errors.New("it does not answer in time")
	errAllTimeout = errors.New("they do not all answer in time")
	errNoAnswer   = errors.New("it does not answer as a web server does")
)
