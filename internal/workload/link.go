package workload

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Link is when a workload began to want a source in its present way, with all keys of the source that it reads now.
type Link struct {
	// Version is the resourceVersion at which it began to want the source, or an earlier one, not always of the workload itself.
	Version string
	// Written is the time of the write that began it, or of a later write, in whole seconds. It is zero if unknown.
	Written time.Time
}

// maxLinks is how many writes are remembered that changed what a workload wants. Sources from before them count as always wanted.
const maxLinks = 4

// linking is a write that changed what a workload wants.
type linking struct {
	Link
	// before is what the workload wanted before the write, and rolled was its record.
	before wishes
	rolled map[string]RolledFor
}

// wishes is what a workload wants. The zero value wants nothing.
type wishes struct {
	OptIn OptIn
	// Refs are the references of the pod spec.
	Refs []Reference
}

// want returns whether a workload in a namespace wants a source, assuming that the source has the match annotation.
func (v wishes) want(source events.Source, namespace string) Want {
	return v.OptIn.Wants(source, referenceTo(source, v.Refs, namespace), true)
}

func (v wishes) areLike(other wishes) bool {
	return v.OptIn.isLike(other.OptIn) && slices.EqualFunc(v.Refs, other.Refs, Reference.isLike)
}

// IsFoundAs reports whether the index finds the workload by the same sources, namespaces and other workloads as another state of it.
func (w *Workload) IsFoundAs(other *Workload) bool {
	return w.areLike(other.wishes) && w.Through() == other.Through() && (w.Wave == 0) == (other.Wave == 0)
}

// Link returns since when the workload has wanted a source in its present way, and false if it always has, or if it does not want it or was rolled
// since. Ignored are the keys of the source that count only for workloads that name them.
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

// LinkAfter sets the links of w, given its earlier state, which may be nil. It reports whether w may want sources in a new way. Since is the Version
// of a new link. If it is empty, the past is unknown, and no link is made.
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
