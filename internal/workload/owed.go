package workload

import (
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// These stand in a record for the fingerprint of a source that the workload waits to be rolled for: for its content, or because it was deleted.
const (
	owedContent  = "owed"
	owedDeletion = "owed-for-deletion"
)

// Owed returns the entry in the record of a source that the workload waits to be rolled for, where the stream may forget that. It differs from the
// content of every change, and none is older.
func Owed(change RolledFor) RolledFor {
	key, _, _ := strings.Cut(change.Fingerprint, ":")
	content := owedContent
	if change.IsDeleted() {
		content = owedDeletion
	}
	return RolledFor{Fingerprint: key + ":" + content, Version: NoVersion, UID: change.UID}
}

// OwesDeletion reports whether the workload waits to be rolled because the source was deleted.
func (r RolledFor) OwesDeletion() bool {
	_, content, _ := strings.Cut(r.Fingerprint, ":")
	return content == owedDeletion
}

func (r RolledFor) isOwed() bool {
	_, content, _ := strings.Cut(r.Fingerprint, ":")
	return content == owedContent || content == owedDeletion
}

// Owed lists the sources that the workload wants and waits to be rolled for, as its record says, in no order.
func (w *Workload) Owed() []events.Source { return w.recorded(RolledFor.isOwed) }

// Recorded lists the sources that the workload wants and that its record names, in no order.
func (w *Workload) Recorded() []events.Source {
	return w.recorded(func(RolledFor) bool { return true })
}

func (w *Workload) recorded(is func(RolledFor) bool) []events.Source {
	var list []events.Source
	for text, entry := range w.Rolled {
		source, err := events.ParseSource(text)
		if err != nil || !is(entry) {
			continue
		}
		// Whoever may annotate the workload must not have the stream read for each line.
		if source = SourceNamed(source.Kind, w.ID.Namespace, source.Name); w.wants(source).Wanted() {
			list = append(list, source)
		}
	}
	return list
}
