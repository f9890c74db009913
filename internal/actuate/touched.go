package actuate

import (
	"sync"

	"github.com/keyturn/keyturn/internal/workload"
)

// touched gathers the workloads that have changed, for the engine to look at.
type touched struct {
	signal chan struct{}
	mu     sync.Mutex
	keys   map[workload.Key]struct{}
}

func newTouched() *touched {
	return &touched{signal: make(chan struct{}, 1), keys: make(map[workload.Key]struct{})}
}

func (t *touched) add(key workload.Key) {
	t.mu.Lock()
	t.keys[key] = struct{}{}
	t.mu.Unlock()
	select {
	case t.signal <- struct{}{}:
	default: // the engine is told already
	}
}

func (t *touched) take() map[workload.Key]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.keys
	t.keys = make(map[workload.Key]struct{})
	return keys
}
