package sources

import "github.com/keyturn/keyturn/internal/events"

// sweeper finds sources that were deleted while the watcher was down.
type sweeper struct {
	ledger *ledger
	scope  scope
	cached objectCache
	gone   func(source events.Source)
}

// sweep calls gone for the sources of a kind that exist on the stream but not in the cluster. A namespace that is gone, too, does not count as
// selected.
func (s *sweeper) sweep(kind events.Kind) {
	for _, source := range s.ledger.sources() {
		if source.Kind == kind && s.scope.lists(source.Namespace) && s.cached.lookup(source) == nil {
			s.gone(source)
		}
	}
}
