package workload

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// These limit the entries for sources of one kind that only patterns match. Kubernetes allows 256 KiB for all annotations of an object.
const (
	maxMatched      = 200
	maxMatchedBytes = 32 << 10
)

// lowWaterOf returns the key and UID of the entry that replaces dropped ones: "configmap/*", or "openbao/<store>/*" and the store.
func lowWaterOf(text string) (key, uid string) {
	kind, name, _ := strings.Cut(text, "/")
	if events.Kind(kind) != events.KindOpenBao {
		return kind + "/" + everything, lowWater
	}
	store, _, _ := strings.Cut(name, "/")
	return kind + "/" + store + "/" + everything, store
}

// newRecord returns the record with new entries, and without those that exceed its limits.
func (w *Workload) newRecord(write map[string]RolledFor) map[string]RolledFor {
	rolled, dropped := w.bounded(w.Rolled, write)
	for text, last := range dropped {
		key, uid := lowWaterOf(text)
		mark := rolled[key]
		if !mark.IsLowWater() || !events.Newer(mark.Version, NoVersion) {
			mark = RolledFor{Fingerprint: lowWater, Version: NoVersion, UID: uid}
		}
		if events.Newer(last.Version, mark.Version) {
			mark.Version = last.Version
		}
		rolled[key] = mark
	}
	return rolled
}

// HasDropped reports whether the record had no room for a source whose changes are done up to a version, which is empty if it never changed.
func (w *Workload) HasDropped(source events.Source, version string) bool {
	done := w.DroppedTo(source)
	version = cmp.Or(version, NoVersion)
	return version == done || events.Newer(done, version)
}

// DroppedTo returns the version up to which the changes of a source without room in the record are done, or "" if there was room.
func (w *Workload) DroppedTo(source events.Source) string {
	key, _ := lowWaterOf(source.String())
	mark := w.Rolled[key]
	if !mark.IsLowWater() || w.naming()(source) || !w.OptIn.matches(source) {
		return "" // Only sources that match nothing but a pattern are dropped.
	}
	return mark.Version
}

// storeTolerance is how far ahead the clock of a secret store may be.
const storeTolerance = time.Minute

// IsAhead reports whether a version of a source is later than everything that the writer of the record can have seen. In one etcd, that is every
// version newer than the workload. Versions of a store are times.
func (w *Workload) IsAhead(kind events.Kind, version string, now time.Time) bool {
	if kind == events.KindOpenBao {
		return !now.IsZero() && events.Newer(version, strconv.FormatInt(now.Add(storeTolerance).UnixNano(), 10))
	}
	return events.Newer(version, w.Version)
}

// isForgedMark reports whether an entry is a low-water mark for sources at the API server that is newer than the object with the record. A mark in
// memory cannot be checked like this, as it is not bound by the version of the workload.
func isForgedMark(text string, entry RolledFor, version string) bool {
	return entry.IsLowWater() && !strings.HasPrefix(text, string(events.KindOpenBao)+"/") && events.Newer(entry.Version, version)
}

// bounded returns the entries with new ones added, without sources that do not concern the workload. Dropped contains those that exceed the limits.
func (w *Workload) bounded(entries, write map[string]RolledFor) (kept, dropped map[string]RolledFor) {
	kept, dropped = make(map[string]RolledFor, len(entries)+len(write)), make(map[string]RolledFor)
	maps.Copy(kept, entries)
	maps.Copy(kept, write)
	matched, names := make(map[events.Kind][]string), w.naming()
	for text, entry := range kept {
		source, err := events.ParseSource(text)
		if err == nil {
			source = SourceNamed(source.Kind, w.ID.Namespace, source.Name)
		}
		switch {
		case err == nil && entry.IsLowWater() && w.OptIn.HasPatterns(source.Kind):
		case err == nil && names(source):
		case err == nil && w.OptIn.matches(source):
			matched[source.Kind] = append(matched[source.Kind], text)
		default:
			delete(kept, text)
		}
	}
	for _, texts := range matched {
		for _, text := range surplus(texts, kept, write) {
			dropped[text] = kept[text]
			delete(kept, text)
		}
	}
	return kept, dropped
}

// Notable returns the entries for which the record has room.
func (w *Workload) Notable(entries map[string]RolledFor) map[string]RolledFor {
	rolled, notable := w.newRecord(entries), make(map[string]RolledFor, len(entries))
	for text, entry := range entries {
		if _, kept := rolled[text]; kept {
			notable[text] = entry
		}
	}
	return notable
}

// surplus returns the texts, which name sources of one kind, that exceed the limits. Sources of the present roll have priority, then owed ones, of
// which a new one displaces no earlier one, then the most recently changed ones.
func surplus(texts []string, rolled, write map[string]RolledFor) []string {
	slices.SortFunc(texts, func(a, b string) int {
		newerFirst := events.CompareVersions(rolled[b].Version, rolled[a].Version)
		return cmp.Or(cmp.Compare(rank(a, rolled, write), rank(b, rolled, write)), newerFirst, strings.Compare(a, b))
	})
	size := 0
	for i, text := range texts {
		if size += len(text) + len(rolled[text].String()); i >= maxMatched || size > maxMatchedBytes {
			return texts[i:]
		}
	}
	return nil
}

// rank returns the priority of an entry of a record. The lowest ranks are kept.
func rank(text string, rolled, write map[string]RolledFor) int {
	_, isNew := write[text]
	switch isOwed := rolled[text].IsOwed(); {
	case isNew && !isOwed:
		return 0
	case isOwed && !isNew:
		return 1
	case isOwed:
		return 2
	}
	return 3
}

// naming returns a test for sources that the workload references or names. It builds an index, because the record may have many sources, too.
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

// readRecord returns the record of an object. It returns false if the annotation was not written by the actuator, or is invalid.
func readRecord(meta *metav1.ObjectMeta) (rolled map[string]RolledFor, ours bool) {
	if !isOurs(meta, annotationRolled) {
		return nil, false
	}
	text := meta.Annotations[annotationRolled]
	if rolled = parseRolled(text); rolled == nil && text != "" {
		return nil, false
	}
	return rolled, true
}

// recallRecord keeps the record of an earlier state, unless the annotation has the value that the actuator wrote.
func (w *Workload) recallRecord(earlier *Workload) {
	if !w.ours && w.unwritten == nil {
		w.Rolled = earlier.Rolled
	}
}

// IsRecordLost reports whether others have replaced or removed the annotation, so that only memory has the record.
func (w *Workload) IsRecordLost() bool {
	return !w.ours && w.unwritten == nil && len(w.Rolled) > 0 && !w.OptIn.Empty()
}

// Owed returns the wanted sources that the workload is still to be rolled for according to its record, in no particular order.
func (w *Workload) Owed() []events.Source { return w.recorded(RolledFor.IsOwed) }

// Recorded returns the wanted sources in the workload's record, in no particular order.
func (w *Workload) Recorded() []events.Source {
	return w.recorded(func(RolledFor) bool { return true })
}

func (w *Workload) recorded(is func(RolledFor) bool) []events.Source {
	var list []events.Source
	for text, entry := range w.Rolled {
		source, err := events.ParseSource(text)
		if err != nil || entry.IsLowWater() || !is(entry) {
			continue
		}
		// The record is an annotation, and its authors must not make the actuator read the stream for each line.
		if source = SourceNamed(source.Kind, w.ID.Namespace, source.Name); w.wants(source).Wanted() {
			list = append(list, source)
		}
	}
	return list
}
