package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// OptIn determines the sources that a workload rolls on. The zero value contains none.
type OptIn struct {
	include []rule
	exclude []rule
	// none says that the workload rolls on nothing, regardless of other annotations or workloads.
	none bool
}

// Wants returns whether and why the workload rolls on a source. Ref may be nil, and match says that the source has Reloader's annotation.
func (o OptIn) Wants(source events.Source, ref *Reference, match bool) Want {
	var except []string
	var partly Want
	for i := range o.exclude {
		r := &o.exclude[i]
		switch {
		case !r.covers(source):
		case r.key == "":
			return Want{Reason: Excluded, Annotation: r.annotation, Item: r.item}
		default:
			except = append(except, r.key)
			partly = Want{Reason: Excluded, Annotation: r.annotation, Item: r.item}
		}
	}
	want := o.includes(source, ref, match)
	if !want.Wanted() {
		return want
	}
	want.Named = o.keysNamed(source)
	if len(except) == 0 {
		return want
	}
	slices.Sort(except)
	want.Except = slices.Compact(except)
	if read := want.Keys; read != nil {
		want.Keys = slices.DeleteFunc(slices.Clone(read), func(key string) bool { return slices.Contains(except, key) })
		want.Except = slices.DeleteFunc(want.Except, func(key string) bool { return !slices.Contains(read, key) })
		if len(want.Keys) == 0 {
			return partly
		}
	}
	return want
}

// keysNamed returns the keys of a source that are named individually, sorted.
func (o OptIn) keysNamed(source events.Source) []string {
	var keys []string
	for i := range o.include {
		if r := &o.include[i]; r.key != "" && r.covers(source) && r.names(source) {
			keys = append(keys, r.key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// includes returns whether and why the workload rolls on a source that is not excluded.
func (o OptIn) includes(source events.Source, ref *Reference, match bool) Want {
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
		case ref == nil && !r.names(source):
		case r.reason != byName && ref.ByPull:
			want.Reason = OnlyPulled
			passed = want
		case r.key == "":
			// Later rules include no more keys.
			if ref != nil && !r.whole {
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

// and returns the opt-in of two workloads as if one had the annotations of both. --roll-all includes the kinds that neither mentions.
func (o OptIn) and(other OptIn) OptIn {
	if o.none || other.none {
		return OptIn{none: true}
	}
	both := OptIn{include: slices.Concat(o.include, other.include), exclude: slices.Concat(o.exclude, other.exclude)}
	both.include = slices.DeleteFunc(both.include, func(r rule) bool {
		return r.reason == byAll && (!o.rollsAll(r.kind) || !other.rollsAll(r.kind))
	})
	slices.SortStableFunc(both.include, rule.compare)
	return both
}

// rollsAll reports whether --roll-all includes the sources of a kind.
func (o OptIn) rollsAll(kind events.Kind) bool {
	return slices.ContainsFunc(o.include, func(r rule) bool { return r.reason == byAll && r.kind == kind })
}

// isLike reports whether both come from the same items.
func (o OptIn) isLike(other OptIn) bool {
	return o.none == other.none && slices.EqualFunc(o.include, other.include, rule.isLike) && slices.EqualFunc(o.exclude, other.exclude, rule.isLike)
}

// Empty reports whether the workload rolls on no source.
func (o OptIn) Empty() bool { return len(o.include) == 0 }

// None reports whether the workload rolls on nothing, regardless of other workloads.
func (o OptIn) None() bool { return o.none }

// names returns the sources that are named exactly, sorted. The workload may want them without referencing them.
func (o OptIn) names(namespace string) []events.Source {
	var list []events.Source
	for i := range o.include {
		if name, ok := o.include[i].name.(exactly); ok && !o.include[i].namesNothing() {
			list = append(list, SourceNamed(o.include[i].kind, namespace, string(name)))
		}
	}
	slices.SortFunc(list, func(a, b events.Source) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(list)
}

// matches reports whether a source is named, exactly or by a pattern.
func (o OptIn) matches(source events.Source) bool {
	return slices.ContainsFunc(o.include, func(r rule) bool { return r.name != nil && r.covers(source) && r.mayName(source) })
}

// HasPatterns reports whether a pattern names sources of the kind, so that the workload may want any source of the kind in its namespace.
func (o OptIn) HasPatterns(kind events.Kind) bool {
	return slices.ContainsFunc(o.include, func(r rule) bool {
		_, exact := r.name.(exactly)
		return r.name != nil && !exact && r.kind == kind && !r.namesNothing()
	})
}

// WantReason is why a workload rolls on a source, or why not. The reasons to roll come last, in the order in which they are tried.
type WantReason int

const (
	// NotWanted means that no annotation is about the source.
	NotWanted WantReason = iota
	// Excluded means that an annotation excludes the source.
	Excluded
	// OnlyPulled means that only image pulls use the source, and that no annotation names it.
	OnlyPulled
	// KeyNotRead means that the annotations name keys of the source that the pod spec does not read.
	KeyNotRead
	// byName means that an annotation names the source, exactly or by a pattern.
	byName
	// bySearch means that the workload searches for sources with the match annotation, and references this one, which has it.
	bySearch
	// byAuto means that the workload rolls on everything that its pod spec references.
	byAuto
	// byAll means that --roll-all makes every workload roll on everything that its pod spec references.
	byAll
)

// Want says whether a workload rolls on a source, and why.
type Want struct {
	Reason WantReason
	// Keys are the data keys that count, sorted. Nil means all. If the source is wanted, Keys is nil or not empty.
	Keys []string
	// Except are the keys that the annotations exclude and that would otherwise count, sorted.
	Except []string
	// Named are the keys that the annotations name individually, sorted. They count even if the source says otherwise.
	Named []string
	// Annotation and Item are the deciding annotation and item. They are empty for NotWanted and --roll-all.
	Annotation string
	Item       string
}

// Wanted reports whether the workload rolls on the source.
func (w Want) Wanted() bool { return w.Reason >= byName }

// maxKeysNamed is the maximum number of keys in a sentence.
const maxKeysNamed = 5

// JoinKeys lists keys for a sentence, and only counts those beyond the first few: "a, b, c, d, e, 2 more".
func JoinKeys(keys []string) string {
	if len(keys) <= maxKeysNamed {
		return strings.Join(keys, ", ")
	}
	return strings.Join(keys[:maxKeysNamed], ", ") + fmt.Sprintf(", %d more", len(keys)-maxKeysNamed)
}
