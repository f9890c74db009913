package sources

import "sync/atomic"

// installState tracks whether the API server serves a custom kind.
type installState struct {
	// absent reports that the API server does not serve the kind. Then nothing waits for it.
	absent atomic.Bool
	// troubled reports that a list or watch of the kind failed at least once.
	troubled atomic.Bool
	// denied reports that the last of these failures was a missing permission.
	denied atomic.Bool
}
