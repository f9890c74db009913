package actuate

import "sync"

// touched gathers the workloads that have changed, for the engine to look at.
type touched struct {
	signal chan struct{}
	mu     sync.Mutex
	keys   map[workloadKey]struct{}
}

func newTouched() *touched {
	return &touched{signal: make(chan struct{}, 1), keys: make(map[workloadKey]struct{})}
}

func (t *touched) add(key workloadKey) {
	t.mu.Lock()
	t.keys[key] = struct{}{}
	t.mu.Unlock()
	select {
	case t.signal <- struct{}{}:
	default: // the engine is told already
	}
}

func (t *touched) take() map[workloadKey]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.keys
	t.keys = make(map[workloadKey]struct{})
	return keys
}
