package actuate

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// syncInbox gathers what others have for the syncer, and wakes the engine to it.
type syncInbox struct {
	wake chan struct{}

	mu      sync.Mutex
	changed map[types.NamespacedName]struct{}
	answers []syncAnswer
	rung    bool
}

func newSyncInbox() *syncInbox {
	return &syncInbox{wake: make(chan struct{}, 1), changed: make(map[types.NamespacedName]struct{})}
}

// touch tells of an ExternalSecret that has changed or gone.
func (i *syncInbox) touch(name types.NamespacedName) {
	i.put(func() { i.changed[name] = struct{}{} })
}

// answer tells what became of a patch.
func (i *syncInbox) answer(a syncAnswer) { i.put(func() { i.answers = append(i.answers, a) }) }

// ring tells that it is time to look at the time.
func (i *syncInbox) ring() { i.put(func() { i.rung = true }) }

// forget drops the answers that are for another syncer, from when this actuator was the leader before.
func (i *syncInbox) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers = nil
}

func (i *syncInbox) put(write func()) {
	i.mu.Lock()
	write()
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default: // the engine is told already
	}
}

func (i *syncInbox) take() (changed map[types.NamespacedName]struct{}, answers []syncAnswer, rung bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	changed, answers, rung = i.changed, i.answers, i.rung
	i.changed, i.answers, i.rung = make(map[types.NamespacedName]struct{}), nil, false
	return changed, answers, rung
}
