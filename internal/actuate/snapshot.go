package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// newSnapshot counts what the parts of the loop have.
func newSnapshot(o *rollouts) *snapshot {
	debounce := o.debounce
	s := &snapshot{
		pending: len(debounce.byKey), held: make(map[plan.Reason]int), oldest: make(map[plan.Reason]time.Duration),
		active: countByKind(o.following.rollouts), failing: countByKind(o.peers.keys),
		reverted: o.index.Reverted(plan.RevertRetries),
	}
	for _, p := range debounce.byKey {
		if p.isHeld() {
			s.held[p.held]++
			s.oldest[p.held] = max(s.oldest[p.held], p.age(o.now()))
		}
	}
	return s
}

func countByKind[V any](keys map[workload.Key]V) map[string]int {
	count := make(map[string]int)
	for key := range keys {
		count[key.Kind]++
	}
	return count
}
