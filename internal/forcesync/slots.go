package forcesync

import "context"

// slots limits how many ExternalSecrets are patched but not synced yet.
type slots struct {
	limit, used int
	// active is called with each change of used.
	active func(ctx context.Context, change int64)
}

func (l *slots) free() bool { return l.used < l.limit }

// acquire counts a sync against the limit. The ExternalSecrets of one ClusterExternalSecret are patched together, and may exceed the limit.
func (l *slots) acquire(ctx context.Context, s *pendingSync) {
	s.hasSlot = true
	l.used++
	l.active(s.newest().context(ctx), 1)
}

// release returns the slot of a sync, if it has one.
func (l *slots) release(ctx context.Context, s *pendingSync) {
	if s.hasSlot {
		s.hasSlot = false
		l.used--
		l.active(s.newest().context(ctx), -1)
	}
}
