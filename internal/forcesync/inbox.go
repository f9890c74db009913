package forcesync

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// inbox collects what other goroutines have for the Syncer, and signals that it has something.
type inbox struct {
	signal chan struct{}

	mu sync.Mutex
	// changed are the ExternalSecrets that were changed or deleted.
	changed map[types.NamespacedName]struct{}
	answers []answer
}

func newInbox() *inbox {
	return &inbox{signal: make(chan struct{}, 1), changed: make(map[types.NamespacedName]struct{})}
}

func (i *inbox) markChanged(name types.NamespacedName) {
	i.put(func() { i.changed[name] = struct{}{} })
}

func (i *inbox) addAnswer(a answer) { i.put(func() { i.answers = append(i.answers, a) }) }

func (i *inbox) put(write func()) {
	i.mu.Lock()
	write()
	i.mu.Unlock()
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
	i.changed, i.answers = make(map[types.NamespacedName]struct{}), nil
	return changed, answers
}

// dropAnswers removes the answers to the patches of a Syncer that has stopped.
func (i *inbox) dropAnswers() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers = nil
}
