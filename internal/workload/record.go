package workload

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// These limit the part of the record, and of the counts of rolls that were undone, for sources of one kind that only patterns match, such as one
// ConfigMap for each release. Kubernetes allows 256 KiB for all annotations of an object.
const (
	maxMatched      = 200
	maxMatchedBytes = 32 << 10
)

// newRecord returns the record with new entries added, as bounded does.
func (w *Workload) newRecord(write map[string]RolledFor) map[string]RolledFor {
	return w.bounded(w.Rolled, write)
}

// bounded returns entries by source with new ones added. It drops sources that no longer concern the workload, and, of those that only patterns
// match, the ones beyond the limits.
func (w *Workload) bounded(entries, write map[string]RolledFor) map[string]RolledFor {
	rolled := make(map[string]RolledFor, len(entries)+len(write))
	maps.Copy(rolled, entries)
	maps.Copy(rolled, write)
	matched, names := make(map[events.Kind][]string), w.naming()
	for text := range rolled {
		source, err := events.ParseSource(text)
		if err == nil {
			source = SourceNamed(source.Kind, w.ID.Namespace, source.Name)
		}
		switch {
		case err == nil && names(source):
		case err == nil && w.OptIn.matches(source):
			matched[source.Kind] = append(matched[source.Kind], text)
		default:
			delete(rolled, text)
		}
	}
	for _, texts := range matched {
		for _, text := range surplus(texts, rolled, write) {
			delete(rolled, text)
		}
	}
	return rolled
}

// Notable returns the entries that the record of the workload has room for.
func (w *Workload) Notable(entries map[string]RolledFor) map[string]RolledFor {
	rolled, notable := w.newRecord(entries), make(map[string]RolledFor, len(entries))
	for text, entry := range entries {
		if _, kept := rolled[text]; kept {
			notable[text] = entry
		}
	}
	return notable
}

// surplus returns those of the texts, which name sources of one kind in a record, that exceed the limits. Sources that are rolled for now have
// priority, then those that the workload is still to be rolled for, then those that changed last. Of entries that the workload is still to be
// rolled for, a new one displaces no earlier one.
func surplus(texts []string, rolled, write map[string]RolledFor) []string {
	slices.SortFunc(texts, func(a, b string) int {
		if by := cmp.Compare(rank(a, rolled, write), rank(b, rolled, write)); by != 0 {
			return by
		}
		switch {
		case Newer(rolled[a].Version, rolled[b].Version):
			return -1
		case Newer(rolled[b].Version, rolled[a].Version):
			return 1
		}
		return strings.Compare(a, b)
	})
	size := 0
	for i, text := range texts {
		if size += len(text) + len(rolled[text].String()); i >= maxMatched || size > maxMatchedBytes {
			return texts[i:]
		}
	}
	return nil
}

// rank returns the priority of an entry of a record. The lowest ranks stay.
func rank(text string, rolled, write map[string]RolledFor) int {
	_, isNew := write[text]
	switch isOwed := rolled[text].isOwed(); {
	case isNew && !isOwed:
		return 0
	case isOwed && !isNew:
		return 1
	case isOwed:
		return 2
	}
	return 3
}

// naming returns a function that reports whether the workload references a source, or names it exactly. A record has as many sources as the
// author of the workload likes, and so has the workload, so one is not searched for each of the other.
func (w *Workload) naming() func(events.Source) bool {
	named := make(map[events.Source]bool)
	for _, source := range w.Sources() {
		named[source] = true
	}
	return func(source events.Source) bool {
		return slices.ContainsFunc(Spellings(source), func(name string) bool {
			return named[events.Source{Kind: source.Kind, Namespace: source.Namespace, Name: name}]
		})
	}
}
