package forcesync

import "context"

// slots limits how many ExternalSecrets are patched but not synced yet, in the cluster and in each namespace. A namespace may take one while it has
// fewer than there are free slots, as with rollouts: so a single busy namespace gets half of the slots, and another one finds a free slot.
type slots struct {
	limit, used int
	// alone says that ExternalSecrets of no other namespace are watched. Nobody else needs a slot.
	alone bool
	// taken counts the slots by namespace.
	taken map[string]int
	// active is called with each change of used.
	active func(ctx context.Context, change int64)
}

// newSlots returns the slots of a host.
func newSlots(host *Host) slots {
	return slots{limit: host.MaxSyncs, alone: host.Alone, taken: make(map[string]int), active: host.Metrics.Active}
}

// free reports whether a namespace may take a slot.
func (l *slots) free(namespace string) bool {
	free := l.limit - l.used
	return free > 0 && (l.alone || l.taken[namespace] < free)
}

// acquire counts a sync against the limit. The ExternalSecrets of one ClusterExternalSecret are patched together, and may exceed the limit.
func (l *slots) acquire(ctx context.Context, s *pendingSync) {
	s.hasSlot = true
	l.used++
	l.taken[s.key.secret.Namespace]++
	l.active(s.newest().context(ctx), 1)
}

// release returns the slot of a sync, if it has one.
func (l *slots) release(ctx context.Context, s *pendingSync) {
	if !s.hasSlot {
		return
	}
	s.hasSlot = false
	l.used--
	if namespace := s.key.secret.Namespace; l.taken[namespace] > 1 {
		l.taken[namespace]--
	} else {
		delete(l.taken, namespace)
	}
	l.active(s.newest().context(ctx), -1)
}
