package workload

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Link is since when a workload wants a source the way it does: with all the keys that it reads of it now.
type Link struct {
	// Version is a resourceVersion up to which it did not, or at which it began to.
	Version string
	// Written is the time of the write by which it began to, or of a later one, to the second. Zero: it is not known.
	Written time.Time
}

// Link returns since when the workload wants a source the way it does. It is false if the workload already did when it was first seen.
func (w *Workload) Link(source events.Source) (Link, bool) {
	link, ok := w.links[source]
	return link, ok
}

// Linked lists the sources that have a Link, in no order.
func (w *Workload) Linked() []events.Source {
	list := make([]events.Source, 0, len(w.links))
	for source := range w.links {
		list = append(list, source)
	}
	return list
}

// LinkAfter copies to w what is known of its links from an earlier state, and returns the sources that w wants in a way in which the earlier
// state, nil if there is none, did not. Since is the Version of their links; empty: nothing is known of the time before, and there are none.
//
// A link ends when something is recorded of the source. Sources that only a pattern names, and secrets in stores, which a workload names
// without their store, have no link.
func (w *Workload) LinkAfter(earlier *Workload, since string) []events.Source {
	w.links = nil
	if earlier != nil && earlier.ID.UID != w.ID.UID {
		earlier = nil
	}
	if earlier == nil && since == "" {
		return nil
	}
	var fresh []events.Source
	for _, source := range w.namedSources() {
		want, before := w.wants(source), Want{}
		if earlier != nil {
			before = earlier.wants(source)
		}
		link, linked := Link{Version: since, Written: w.WantedBy()}, since != ""
		switch {
		case !want.Wanted():
			continue
		case want.within(before):
			link, linked = earlier.Link(source)
			linked = linked && w.Rolled[source.String()] == earlier.Rolled[source.String()]
		case linked:
			fresh = append(fresh, source)
		}
		if linked && w.links == nil {
			w.links = make(map[events.Source]Link)
		}
		if linked {
			w.links[source] = link
		}
	}
	return fresh
}

// Unrecorded lists the sources that the workload may want and that its record says nothing of. Like LinkAfter it leaves out what only a pattern
// names, and secrets in stores.
func (w *Workload) Unrecorded() []events.Source {
	var list []events.Source
	for _, source := range w.namedSources() {
		if _, recorded := w.Rolled[source.String()]; !recorded && w.wants(source).Wanted() {
			list = append(list, source)
		}
	}
	return list
}

// namedSources lists the sources that the workload references or names exactly, each once.
func (w *Workload) namedSources() []events.Source {
	if w.OptIn.Empty() {
		return nil
	}
	var list []events.Source
	for _, source := range w.Sources() {
		if source.Kind != events.KindOpenBao && !slices.Contains(list, source) {
			list = append(list, source)
		}
	}
	return list
}

// wants returns whether the workload wants a source, if that has the match annotation.
func (w *Workload) wants(source events.Source) Want {
	return w.OptIn.Wants(source, w.Reference(source), true)
}

// within reports whether whoever wants the source in the other way wants everything of it that this way does.
func (w Want) within(other Want) bool {
	if !other.Wanted() || other.Keys != nil && w.Keys == nil {
		return false
	}
	return other.Keys == nil || !slices.ContainsFunc(w.Keys, func(key string) bool { return !slices.Contains(other.Keys, key) })
}
