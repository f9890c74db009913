package sources

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// view is what a kind of source may use to assess an object.
type view struct {
	cached objectCache
	// contents has the contents of SecretProviderClasses that pods had.
	contents *podContents
	ring     *keyring
	now      func() time.Time
	// hasListed reports whether the first list of a kind has been handled.
	hasListed func(kind events.Kind) bool
	// version returns the resourceVersion that the cache of a kind in a namespace has reached.
	version func(kind events.Kind, namespace string) string
	// doubted reports whether the cached object of a source may be older than its last event. If so, the source is assessed again later. version is
	// the one that the cache had reached before it was read.
	doubted func(source events.Source, before *lastEvent, now *object, version string) bool
	// isRecent reports whether an object that was never watched was created shortly before it was found.
	isRecent func(now *object) bool
	// recheck assesses a source again after a delay.
	recheck func(source events.Source, delay time.Duration)
	// unreadable reports an object whose status cannot be read.
	unreadable func(source events.Source)
}
