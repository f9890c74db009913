package workload

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// WantReason says why a workload rolls on a source, or why not. Its String feeds logs, labels and explanations.
type WantReason int

// The reasons in the order of the checks, those that roll last.
const (
	// NotWanted: no annotation concerns the source.
	NotWanted WantReason = iota
	// Excluded: an annotation excludes the source.
	Excluded
	// OnlyPulled: only image pulls use the source, and nothing names it.
	OnlyPulled
	// KeyNotRead: annotations name keys of the source that the pod spec does not read.
	KeyNotRead
	// byName: the workload names the source, exactly or by a pattern.
	byName
	// bySearch: the workload searches for sources with the match annotation, and references this one, which has it.
	bySearch
	// byAuto: the workload rolls on what its pod spec references.
	byAuto
	// byAll: with --roll-all, every workload rolls on what its pod spec references.
	byAll
)

func (r WantReason) String() string {
	switch r {
	case NotWanted:
		return "not-wanted"
	case Excluded:
		return "excluded"
	case OnlyPulled:
		return "pulled-only"
	case KeyNotRead:
		return "key-not-read"
	case byName:
		return "by-name"
	case bySearch:
		return "by-search"
	case byAuto:
		return "by-auto"
	case byAll:
		return "by-all"
	}
	return "unknown"
}

// Want is whether a workload rolls on a source, and why.
type Want struct {
	Reason WantReason
	// Keys are the selected data keys, sorted. Nil means all. Never empty if the source is wanted.
	Keys []string
	// Annotation and Item are those that decided. Empty for NotWanted and byAll.
	Annotation string
	Item       string
}

// Wanted reports whether the workload rolls on the source.
func (w Want) Wanted() bool { return w.Reason >= byName }

// Wants returns whether and why the workload rolls on a source. ref is the pod spec's reference to it, or nil. match means that the
// source has Reloader's match annotation.
func (o OptIn) Wants(source events.Source, ref *Reference, match bool) Want {
	for i := range o.exclude {
		if r := &o.exclude[i]; r.covers(source) {
			return Want{Reason: Excluded, Annotation: r.annotation, Item: r.item}
		}
	}
	var named, passed Want
	var keys []string
	for i := range o.include {
		r := &o.include[i]
		if !r.covers(source) {
			continue
		}
		want := Want{Reason: r.reason, Annotation: r.annotation, Item: r.item}
		switch {
		case r.reason == bySearch && !match:
		case r.reason != byName && ref == nil:
		case r.reason != byName && ref.ByPull:
			want.Reason = OnlyPulled
			passed = want
		case r.key == "":
			// A rule for the whole source includes all others: every key that is read counts.
			if ref != nil {
				want.Keys = ref.Keys
			}
			return want
		case ref != nil && ref.Keys != nil && !slices.Contains(ref.Keys, r.key):
			want.Reason = KeyNotRead
			passed = want
		default:
			keys = append(keys, r.key)
			if named.Reason == NotWanted {
				named = want
			}
		}
	}
	if named.Reason == NotWanted {
		return passed
	}
	slices.Sort(keys)
	named.Keys = slices.Compact(keys)
	return named
}
