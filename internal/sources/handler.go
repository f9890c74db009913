package sources

import (
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// objectHandler queues the sources of the objects that informers receive. It implements cache.ResourceEventHandler.
type objectHandler struct {
	cached   kinds.Cache
	contents *kinds.PodContents
	absence  *absence
	pending  *pendingSources
}

// OnAdd queues the source of an object that was not cached before.
func (h *objectHandler) OnAdd(obj any, inFirstList bool) {
	seen, ok := obj.(*kinds.Object)
	if !ok {
		return
	}
	h.contents.Added(seen)
	noticed := queueEntry{changes: 1}
	if h.absence.isNew(seen, inFirstList) {
		noticed.created, noticed.first = true, seen
	}
	h.queue(seen, noticed)
}

// OnUpdate queues the source of an object, unless the object was only listed again. A new resourceVersion may have the same content.
func (h *objectHandler) OnUpdate(before, after any) {
	earlier, ok := before.(*kinds.Object)
	now, isObject := after.(*kinds.Object)
	if !ok || !isObject || now.ResourceVersion == earlier.ResourceVersion {
		return
	}
	h.contents.Updated(earlier, now)
	var noticed queueEntry
	if !now.HasContentOf(earlier) {
		noticed.changes = 1
	}
	h.queue(now, noticed)
}

// OnDelete queues the source of an object that was deleted or does not match the selector any more.
func (h *objectHandler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	last, ok := obj.(*kinds.Object)
	switch {
	case !ok:
	case last.IsPart():
		h.contents.Removed(last)
		h.queue(last, queueEntry{}) // Its source still exists.
	default:
		h.pending.put(last.Source, queueEntry{gone: true})
	}
}

// queue queues the source of an object, unless the status with its name cannot be read.
func (h *objectHandler) queue(seen *kinds.Object, noticed queueEntry) {
	if seen.About().Name != "" {
		h.pending.put(seen.About(), noticed)
	}
}

// enterNamespace queues the sources of a namespace that came into scope. In a new namespace, the objects are new, too, although they may have been
// seen, and ignored, before the namespace was.
func (h *objectHandler) enterNamespace(namespace string, as arrival) {
	for _, found := range h.cached.InNamespace(namespace) {
		h.queue(found, queueEntry{created: as != byLabel && h.absence.isNew(found, as == byList)})
	}
}
