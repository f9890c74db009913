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

// maxLinks is how many writes are remembered that changed what a workload wants. What an earlier one made it want counts as wanted all along.
const maxLinks = 4

// linking is a write that changed what a workload wants.
type linking struct {
	Link
	// before is what the workload wanted until then, and rolled was its record.
	before wishes
	rolled map[string]RolledFor
}

// wishes is what a workload wants. The zero value wants nothing.
type wishes struct {
	OptIn OptIn
	// Refs are what the pods read.
	Refs []Reference
}

// want returns whether a source is wanted by a workload in a namespace, assuming that the source has the match annotation.
func (v wishes) want(source events.Source, namespace string) Want {
	return v.OptIn.Wants(source, referenceTo(source, v.Refs, namespace), true)
}

func (v wishes) areLike(other wishes) bool {
	return v.OptIn.isLike(other.OptIn) && slices.EqualFunc(v.Refs, other.Refs, Reference.isLike)
}

// IsFoundAs reports whether the same sources, namespaces and other workloads lead to the workload as to another state of it.
func (w *Workload) IsFoundAs(other *Workload) bool {
	return w.areLike(other.wishes) && w.Through() == other.Through() && (w.Wave == 0) == (other.Wave == 0)
}

// Link returns since when the workload has wanted a source as now, and false if it did when it was first seen, or if the source is recorded. Ignored
// are the keys of the source that count only for workloads that name them.
func (w *Workload) Link(source events.Source, ignored ...string) (Link, bool) {
	want, text := w.wants(source), source.String()
	if !want.Wanted() {
		return Link{}, false
	}
	for _, link := range slices.Backward(w.links) {
		switch {
		case link.rolled[text] != w.Rolled[text]:
			return Link{}, false
		case !want.within(link.before.want(source, w.ID.Namespace), ignored):
			return link.Link, true
		}
	}
	return Link{}, false
}

// LinkAfter sets the links of w, the state after an earlier one, which may be nil, and reports whether w may want sources in a way in which that did
// not. Since is the Version of a new link. If it is empty, nothing is known of the time before, and no link is made.
func (w *Workload) LinkAfter(earlier *Workload, since string) bool {
	var links []linking
	var before wishes
	if earlier != nil && earlier.ID.UID == w.ID.UID {
		links, before = earlier.links, earlier.wishes
	}
	if w.links = links; since == "" || w.OptIn.Empty() || before.areLike(w.wishes) {
		return false
	}
	link := linking{Link: Link{Version: since, Written: w.WantedBy()}, before: before, rolled: w.Rolled}
	w.links = append(slices.Clone(links[max(0, len(links)-maxLinks+1):]), link)
	return true
}

// wants returns whether the workload wants a source, assuming that the source has the match annotation.
func (w *Workload) wants(source events.Source) Want { return w.want(source, w.ID.Namespace) }

// within reports whether other covers all keys of the source that w covers.
func (w Want) within(other Want, ignored []string) bool {
	isNew := func(key string) bool { return slices.Contains(w.Named, key) && !slices.Contains(other.Named, key) }
	switch {
	case !other.Wanted() || slices.ContainsFunc(ignored, isNew):
		return false
	case w.Keys == nil:
		return other.Keys == nil && !slices.ContainsFunc(other.Except, func(key string) bool { return !slices.Contains(w.Except, key) })
	}
	return !slices.ContainsFunc(w.Keys, func(key string) bool {
		return slices.Contains(other.Except, key) || other.Keys != nil && !slices.Contains(other.Keys, key)
	})
}
