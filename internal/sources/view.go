package sources

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// view is what a kind of source may use to assess an object.
type view struct {
	cached objectCache
	// contents is what pods had of SecretProviderClasses.
	contents *podContents
	ring     *keyring
	now      func() time.Time
	// hasListed reports whether the first list of a kind was handed on.
	hasListed func(kind events.Kind) bool
	// version returns how far the cached objects of a kind in a namespace are, as a resourceVersion.
	version func(kind events.Kind, namespace string) string
	// doubted reports whether what is cached of a source may be older than its last event, and assesses it again later if so. The version is that
	// of the cache before it was read.
	doubted func(source events.Source, before *lastEvent, now *object, version string) bool
	// isRecent reports whether an object that was never watched was created shortly before it was found.
	isRecent func(now *object) bool
	// recheck assesses a source again after a delay.
	recheck func(source events.Source, delay time.Duration)
	// unreadable reports an object whose status cannot be read.
	unreadable func(source events.Source)
}
