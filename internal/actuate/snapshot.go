package actuate

import (
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// snapshot is the work of the loop in numbers, for the gauges. The loop makes a new one every few seconds and never changes one, so
// that a scrape does not hold up the loop.
type snapshot struct {
	pending int
	held    map[plan.Reason]int
	// active and failing are by kind.
	active, failing map[string]int
}

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
