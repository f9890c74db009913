package workload

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// annotationReverted, on the workload itself, counts by source how often someone else took back a roll for one change of it, by restoring the
// pod template of before. What its entries are about is no longer true once the template or the source has changed.
const annotationReverted = "keyturn.dev/reverted"

// unrolled is the entry in the record of a source that the workload has no content of which is known. It differs from that of every change.
func unrolled(change RolledFor) RolledFor {
	key, _, _ := strings.Cut(change.Fingerprint, ":")
	return RolledFor{Fingerprint: key + ":none", Version: NoVersion, UID: "none"}
}

// Reverted is how often rolls for one change of a source were taken back. Its text form in the annotation is that of RolledFor, with
// "<count>:<template>" as the fingerprint.
type Reverted struct {
	Count int
	// Template identifies the pod template that was restored.
	Template string
	// Version and UID are those of the change, as in RolledFor.
	Version, UID string
}

// TemplateID identifies the pod template, but for Keyturn's annotations on it.
func (w *Workload) TemplateID() string { return fmt.Sprintf("%x", w.bare[:6]) }

// SameTemplate reports whether both have the same pod template, but for Keyturn's annotations on it.
func (w *Workload) SameTemplate(other *Workload) bool { return w.bare == other.bare }

// Reverts returns how often a roll for a change of a source was taken back, since the pod template or the source last changed.
func (w *Workload) Reverts(source string, change RolledFor) int {
	reverted, ok := w.Reverted[source]
	if !ok || reverted.Template != w.TemplateID() || reverted.Version != change.Version || reverted.UID != change.UID {
		return 0
	}
	return reverted.Count
}

// IsReverted reports whether rolls for a change of the source were taken back more often than most, and the workload was not rolled for it
// since.
func (w *Workload) IsReverted(source string, most int) bool {
	reverted := w.Reverted[source]
	change := RolledFor{Version: reverted.Version, UID: reverted.UID}
	return w.Reverts(source, change) > most && !w.Rolled[source].SameChange(change)
}

// Unrolled returns what its record has to say of changes that it has no pods of, although it was patched for them: the entries of before, as
// far as they are known.
func (w *Workload) Unrolled(changes, before map[string]RolledFor) map[string]RolledFor {
	entries := make(map[string]RolledFor)
	for source, change := range changes {
		if last, recorded := w.Rolled[source]; recorded && !last.SameChange(change) {
			continue
		}
		entries[source] = unrolled(change)
		if entry, ok := before[source]; ok {
			entries[source] = entry
		}
	}
	return entries
}

// RevertedAgain counts one more roll for changes that was taken back.
func (w *Workload) RevertedAgain(changes map[string]RolledFor) map[string]Reverted {
	reverted := make(map[string]Reverted)
	for source, change := range changes {
		reverted[source] = Reverted{
			Count: w.Reverts(source, change) + 1, Template: w.TemplateID(), Version: change.Version, UID: change.UID,
		}
	}
	return reverted
}

// recallReverted adds the counts of an earlier state whose annotation is gone: who takes rolls back may remove all that it does not know. A count
// is left out once the workload was rolled for its change or a later one, or has another pod template.
func (w *Workload) recallReverted(earlier *Workload) {
	for source, reverted := range earlier.Reverted {
		_, counted := w.Reverted[source]
		last := w.Rolled[source]
		rolled := last.SameChange(RolledFor{Version: reverted.Version, UID: reverted.UID}) || Newer(last.Version, reverted.Version)
		if counted || rolled || reverted.Template != w.TemplateID() {
			continue
		}
		if w.Reverted == nil {
			w.Reverted = make(map[string]Reverted)
		}
		w.Reverted[source] = reverted
	}
}

// revertedAfter returns the annotation after a write, empty if nothing is left of it.
func (w *Workload) revertedAfter(write Write) (string, error) {
	reverted := maps.Clone(w.Reverted)
	if reverted == nil {
		reverted = make(map[string]Reverted)
	}
	maps.DeleteFunc(reverted, func(source string, r Reverted) bool {
		next, written := write.Rolled[source]
		return r.Template != w.TemplateID() || write.Rolls && written && !next.SameChange(RolledFor{Version: r.Version, UID: r.UID})
	})
	maps.Copy(reverted, write.Reverted)
	if len(reverted) == 0 {
		return "", nil
	}
	entries := make(map[string]RolledFor, len(reverted))
	for source, r := range reverted {
		entries[source] = RolledFor{Fingerprint: strconv.Itoa(r.Count) + ":" + r.Template, Version: r.Version, UID: r.UID}
	}
	return formatRolled(entries)
}

// parseReverted reads the annotation, without the entries that are not valid.
func parseReverted(annotation string) map[string]Reverted {
	if annotation == "" {
		return nil
	}
	reverted := make(map[string]Reverted)
	for source, entry := range parseRolled(annotation) {
		number, template, _ := strings.Cut(entry.Fingerprint, ":")
		if count, err := strconv.Atoi(number); err == nil && count > 0 {
			reverted[source] = Reverted{Count: count, Template: template, Version: entry.Version, UID: entry.UID}
		}
	}
	return reverted
}
