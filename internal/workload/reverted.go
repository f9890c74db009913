package workload

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// annotationReverted, on the workload itself, counts for each source how often others undid a roll for one of its changes by restoring the earlier
// pod template. An entry ends with the template, and with the change.
const annotationReverted = "keyturn.dev/reverted"

// unrolled returns the record entry of a source whose content in the workload's pods is unknown. It differs from the entry of every change.
func unrolled(change RolledFor) RolledFor {
	return RolledFor{Fingerprint: change.key() + ":none", Version: NoVersion, UID: "none"}
}

// Reverted is how often rolls for one change were undone. Its text form is that of RolledFor, with "<count>:<template>" as the fingerprint.
type Reverted struct {
	Count int
	// Template identifies the pod template that was restored.
	Template string
	// Version and UID are those of the change, as in RolledFor.
	Version, UID string
}

// TemplateID identifies the pod template without what rolls write on it.
func (w *Workload) TemplateID() string { return fmt.Sprintf("%x", w.bare[:6]) }

// SameTemplate reports whether both have the same pod template, ignoring what rolls write on it.
func (w *Workload) SameTemplate(other *Workload) bool { return w.bare == other.bare }

// Reverts returns how often a roll for a change of a source was undone since the pod template or the source last changed.
func (w *Workload) Reverts(source string, change RolledFor) int {
	reverted, ok := w.Reverted[source]
	if !ok || reverted.Template != w.TemplateID() || reverted.Version != change.Version || reverted.UID != change.UID {
		return 0
	}
	return reverted.Count
}

// IsReverted reports whether rolls for a change of the source were undone more than most times, and the workload was not rolled for it since.
func (w *Workload) IsReverted(source string, most int) bool {
	reverted := w.Reverted[source]
	change := RolledFor{Version: reverted.Version, UID: reverted.UID}
	return w.Reverts(source, change) > most && !w.Rolled[source].SameChange(change)
}

// Unrolled returns the record entries for changes that the workload was patched for but has no pods of: those of before, or entries of no content.
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

// RevertedAgain returns the counts for changes after one more roll for them was undone.
func (w *Workload) RevertedAgain(changes map[string]RolledFor) map[string]Reverted {
	reverted := make(map[string]Reverted)
	for source, change := range changes {
		reverted[source] = Reverted{Count: w.Reverts(source, change) + 1, Template: w.TemplateID(), Version: change.Version, UID: change.UID}
	}
	return reverted
}

// recallReverted adds the counts of an earlier state whose annotation is gone, as a client that undoes rolls may remove it. A count ends with a roll
// for that change or a later one, and with the pod template. A record that is only remembered says nothing: the roll may be the one that was undone.
func (w *Workload) recallReverted(earlier *Workload) {
	recalled := maps.Clone(w.Reverted) // Other states share it.
	for source, reverted := range earlier.Reverted {
		_, counted := w.Reverted[source]
		last := w.Rolled[source]
		rolled := w.ours && last.SameChange(RolledFor{Version: reverted.Version, UID: reverted.UID}) || events.Newer(last.Version, reverted.Version)
		if counted || rolled || reverted.Template != w.TemplateID() {
			continue
		}
		if recalled == nil {
			recalled = make(map[string]Reverted)
		}
		recalled[source] = reverted
	}
	w.Reverted = recalled
}

// entry returns the text form of the count.
func (r Reverted) entry() RolledFor {
	return RolledFor{Fingerprint: strconv.Itoa(r.Count) + ":" + r.Template, Version: r.Version, UID: r.UID}
}

// revertedAfter returns the value of the annotation after a write, or "" if there is none. It is bounded like the record.
func (w *Workload) revertedAfter(write Write) string {
	kept, added := make(map[string]RolledFor, len(w.Reverted)), make(map[string]RolledFor, len(write.Reverted))
	for source, r := range w.Reverted {
		next, written := write.Rolled[source]
		if isOver := write.Rolls && written && !next.SameChange(r.entry()); r.Template == w.TemplateID() && !isOver {
			kept[source] = r.entry()
		}
	}
	for source, r := range write.Reverted {
		added[source] = r.entry()
	}
	if len(kept)+len(added) > 0 {
		kept, _ = w.bounded(kept, added)
	}
	if len(kept) == 0 {
		return ""
	}
	return formatRolled(kept)
}

// parseReverted reads the annotation. It skips invalid entries.
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
