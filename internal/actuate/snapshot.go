package actuate

import (
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// newSnapshot counts what the parts of the loop have.
func newSnapshot(gathering *debounce, following *following, peers *failedPeers) *snapshot {
	s := &snapshot{
		pending: len(gathering.byKey), held: make(map[plan.Reason]int),
		active: countByKind(following.rollouts), failing: countByKind(peers.keys),
	}
	for _, p := range gathering.held {
		s.held[p.held]++
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
