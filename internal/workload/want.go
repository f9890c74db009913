package workload

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// WantReason says why a workload rolls on a source, or why not. Its String feeds logs, labels and explanations.
type WantReason int

// The reasons, those that roll last and in the order in which they are asked.
const (
	// NotWanted: nothing that the workload says is about the source.
	NotWanted WantReason = iota
	// Excluded: the workload says that it does not roll on the source.
	Excluded
	// OnlyPulled: only image pulls use the source, and nothing names it.
	OnlyPulled
	// KeyNotRead: only keys of the source are named, and the pod spec reads others.
	KeyNotRead
	// byName: the workload names the source, exactly or by a pattern.
	byName
	// bySearch: the workload searches for sources that say match, and references this one, which does.
	bySearch
	// byAuto: the workload rolls on what its pod spec references.
	byAuto
	// byAll: the operator has every workload roll on what its pod spec references.
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
	// Keys are the data keys that count, sorted. Nil: all of them. Never empty where the source is wanted.
	Keys []string
	// Annotation and Item decided. Empty for NotWanted and ByAll.
	Annotation string
	Item       string
}

// Wanted says that the workload rolls on the source.
func (w Want) Wanted() bool { return w.Reason >= byName }

// Wants says whether the workload rolls on a source. Ref is the pod spec's reference to it, nil where there is none. Match
// says that the source carries Reloader's match annotation.
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
			// A rule for the whole source says as much as all rules can: what is read counts.
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
