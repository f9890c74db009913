package sources

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// cacheOf is a cache that holds objects, as informers would have filled it.
func cacheOf(t testing.TB, objects ...*object) objectCache {
	t.Helper()
	cached := make(objectCache)
	for _, seen := range objects {
		kind := seen.source.Kind
		if cached[kind] == nil {
			indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
			if kind == events.KindExternalSecret {
				indexers[targetIndex] = targets
			}
			if kind == kindPodStatus {
				indexers[classIndex] = classOf
			}
			cached[kind] = []cache.Indexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)}
		}
		must(t, cached[kind][0].Add(seen))
	}
	return cached
}

// recheck is a source that is to be assessed again after a delay.
type recheck struct {
	source events.Source
	delay  time.Duration
}

// viewTest is a view of a cache. It records the calls of its functions.
type viewTest struct {
	view
	rechecks   []recheck
	unreadable []events.Source
}

// noVersion is the version of a cache about which nothing is known.
func noVersion(events.Kind, string) string { return "" }

func viewOf(t testing.TB, now time.Time, objects ...*object) *viewTest {
	t.Helper()
	v := &viewTest{}
	v.view = view{
		cached: cacheOf(t, objects...), ring: keyringOf(1), now: func() time.Time { return now },
		isRecent: func(*object) bool { return false }, version: noVersion,
		doubted: func(events.Source, *lastEvent, *object, string) bool { return false },
		recheck: func(source events.Source, delay time.Duration) {
			v.rechecks = append(v.rechecks, recheck{source, delay})
		},
		unreadable: func(source events.Source) { v.unreadable = append(v.unreadable, source) },
	}
	return v
}

// reducedOf is an object as the informers of a kind keep it.
func reducedOf(t testing.TB, kind sourceKind, obj any) *object {
	t.Helper()
	reduced, ok := kind.reduce(keyringOf(1), obj)
	if !ok {
		t.Fatalf("%s does not know its own", kind.kind)
	}
	return reduced
}
