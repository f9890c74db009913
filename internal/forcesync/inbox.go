package forcesync

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// inbox collects what other goroutines have for the Syncer, and signals that it has something.
type inbox struct {
	signal chan struct{}

	mu sync.Mutex
	// changed has the names of the ExternalSecrets that were changed or deleted. It is nil while there is no Syncer, and nothing is kept then.
	changed map[types.NamespacedName]struct{}
	answers []answer
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

// begin makes the inbox collect. The Syncer begins with everything in the index, so it misses nothing that changed before.
func (i *inbox) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed = make(map[types.NamespacedName]struct{})
}

// end drops what the Syncer has not taken, and everything that comes later.
func (i *inbox) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed, i.answers = nil, nil
}

func (i *inbox) markChanged(name types.NamespacedName) {
	i.put(func() { i.changed[name] = struct{}{} })
}

func (i *inbox) addAnswer(a answer) { i.put(func() { i.answers = append(i.answers, a) }) }

func (i *inbox) put(write func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.changed == nil {
		return
	}
	write()
	select {
	case i.signal <- struct{}{}:
	default: // already signaled
	}
}

// take removes and returns everything.
func (i *inbox) take() (changed map[types.NamespacedName]struct{}, answers []answer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	changed, answers = i.changed, i.answers
	if i.answers = nil; changed != nil {
		i.changed = make(map[types.NamespacedName]struct{})
	}
	return changed, answers
}
