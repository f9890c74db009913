package workload

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// annotationReverted, on the workload itself, counts for each source how often others reverted a roll for one of its changes by restoring the earlier
// pod template. It has the form of the record, with "<count>:<template>" as the fingerprint. An entry is valid for one template and one change.
const annotationReverted = "keyturn.dev/reverted"

// unrolled returns the record entry of a source whose content in the pods is unknown. It differs from the entry of every change.
func unrolled(change RolledFor) RolledFor {
	return RolledFor{Fingerprint: change.key() + ":none", Version: NoVersion, UID: "none"}
}

// TemplateID identifies the pod template without the parts that rolls write.
func (w *Workload) TemplateID() string { return fmt.Sprintf("%x", w.bare[:6]) }

// SameTemplate reports whether both have the same pod template, ignoring the parts that rolls write.
func (w *Workload) SameTemplate(other *Workload) bool { return w.bare == other.bare }

// Reverts returns how often a roll for a change of a source was reverted since the pod template or the source last changed.
func (w *Workload) Reverts(source string, change RolledFor) int {
	reverted := w.Reverted[source]
	if !reverted.SameChange(change) {
		return 0
	}
	return w.countIn(reverted)
}

// countIn returns the count of an entry of Reverted, or 0 if it is about another pod template or invalid.
func (w *Workload) countIn(reverted RolledFor) int {
	number, template, _ := strings.Cut(reverted.Fingerprint, ":")
	count, err := strconv.Atoi(number)
	if err != nil || template != w.TemplateID() {
		return 0
	}
	return max(count, 0)
}

// IsReverted reports whether rolls for a change of the source were reverted more than most times, and the workload has not been rolled for it since.
func (w *Workload) IsReverted(source string, most int) bool {
	reverted := w.Reverted[source]
	return w.Reverts(source, reverted) > most && !w.Rolled[source].SameChange(reverted)
}

// Unrolled returns the record entries for changes whose patch left no pods with them: the entries from before, or entries without content.
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

// RevertedAgain returns the counts for changes after one more revert.
func (w *Workload) RevertedAgain(changes map[string]RolledFor) map[string]RolledFor {
	reverted := make(map[string]RolledFor)
	for source, change := range changes {
		count := fmt.Sprintf("%d:%s", w.Reverts(source, change)+1, w.TemplateID())
		reverted[source] = RolledFor{Fingerprint: count, Version: change.Version, UID: change.UID}
	}
	return reverted
}

// recallReverted keeps the counts of an earlier state if the annotation is gone, as a client that reverts rolls may remove it. A count ends with a
// roll for that change or a later one, and with the pod template. A record in memory does not end it, as its roll may be the reverted one.
func (w *Workload) recallReverted(earlier *Workload) {
	recalled := maps.Clone(w.Reverted) // Other states share the map.
	for source, reverted := range earlier.Reverted {
		_, counted := w.Reverted[source]
		last := w.Rolled[source]
		rolled := w.ours && last.SameChange(reverted) || events.Newer(last.Version, reverted.Version)
		if counted || rolled || w.countIn(reverted) == 0 {
			continue
		}
		if recalled == nil {
			recalled = make(map[string]RolledFor)
		}
		recalled[source] = reverted
	}
	w.Reverted = recalled
}

// revertedAfter returns the value of the annotation after a write, or "" if it is empty. It has the limits of the record.
func (w *Workload) revertedAfter(write Write) string {
	kept := maps.Clone(w.Reverted)
	maps.DeleteFunc(kept, func(source string, reverted RolledFor) bool {
		next, written := write.Rolled[source]
		return w.countIn(reverted) == 0 || write.Rolls && written && !next.SameChange(reverted)
	})
	if len(kept)+len(write.Reverted) > 0 {
		kept, _ = w.bounded(kept, write.Reverted)
	}
	if len(kept) == 0 {
		return ""
	}
	return formatRolled(kept)
}
