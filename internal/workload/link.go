package workload

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Link says since when a workload has wanted a source as it does now, with all the keys that it reads of the source now.
type Link struct {
	// Version is a resourceVersion, not always of the workload itself: the one at which it began to want the source, or an earlier one.
	Version string
	// Written is the time of the write that began it, or of a later write, to the second. It is zero if not known.
	Written time.Time
}

// Link returns since when the workload has wanted a source as it does now. It returns false if the workload already did when it was first seen.
func (w *Workload) Link(source events.Source) (Link, bool) {
	link, ok := w.links[source]
	return link, ok
}

// Linked returns the sources that have a Link, in no particular order.
func (w *Workload) Linked() []events.Source {
	list := make([]events.Source, 0, len(w.links))
	for source := range w.links {
		list = append(list, source)
	}
	return list
}

// LinkAfter copies the links of an earlier state to w, and returns the sources that w wants and that the earlier state did not want in this
// way. Earlier is nil if there is no earlier state. Since is the Version of the new links. If it is empty, nothing is known of the time
// before, and no links are made.
//
// A link ends when the source is recorded. Sources that only a pattern names have no link, nor have secrets in stores, which a workload
// names without their store.
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

// Unrecorded returns the sources that the workload may want and that are not in its record. Like LinkAfter, it leaves out sources that only a
// pattern names, and secrets in stores.
func (w *Workload) Unrecorded() []events.Source {
	var list []events.Source
	for _, source := range w.namedSources() {
		if _, recorded := w.Rolled[source.String()]; !recorded && w.wants(source).Wanted() {
			list = append(list, source)
		}
	}
	return list
}

// namedSources returns the sources, except secrets in stores, that the workload references or names exactly, each once.
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

// wants returns whether the workload wants a source, assuming that the source has the match annotation.
func (w *Workload) wants(source events.Source) Want {
	return w.OptIn.Wants(source, w.Reference(source), true)
}

// within reports whether other covers all keys of the source that w covers.
func (w Want) within(other Want) bool {
	if !other.Wanted() || other.Keys != nil && w.Keys == nil {
		return false
	}
	return other.Keys == nil || !slices.ContainsFunc(w.Keys, func(key string) bool { return !slices.Contains(other.Keys, key) })
}
