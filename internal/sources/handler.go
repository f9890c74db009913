package sources

import (
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// objectHandler queues the sources of the objects that informers receive.
type objectHandler struct {
	cached   kinds.Cache
	contents *kinds.PodContents
	absence  *absence
	pending  *pendingSources
}

// added queues the source of an object that was not cached before.
func (h *objectHandler) added(seen *kinds.Object, inFirstList bool) {
	h.contents.Added(seen)
	noticed := queueEntry{changes: 1}
	if h.absence.isNew(seen, inFirstList) {
		noticed.created, noticed.first = true, seen
	}
	h.queue(seen, noticed)
}

// updated queues the source of an object, unless the object was only listed again. A new resourceVersion may have the same content.
func (h *objectHandler) updated(earlier, now *kinds.Object) {
	if now.ResourceVersion == earlier.ResourceVersion {
		return
	}
	h.contents.Updated(earlier, now)
	var noticed queueEntry
	if !now.HasContentOf(earlier) {
		noticed.changes = 1
	}
	h.queue(now, noticed)
}

// deleted queues the source of an object that was deleted or does not match the selector any more.
func (h *objectHandler) deleted(last *kinds.Object) {
	if last.IsPart() {
		h.contents.Removed(last)
		h.queue(last, queueEntry{}) // Its source still exists.
		return
	}
	h.pending.put(last.Source, queueEntry{gone: true})
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
