package workload

import (
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// In a record, these replace the fingerprint of a source that the workload is still to be rolled for: for its content, or because it was deleted.
const (
	owedContent  = "owed"
	owedDeletion = "owed-for-deletion"
)

// Owed returns the record entry of a source that the workload is still to be rolled for, for changes that the stream may forget. The entry
// differs from that of every change, and no entry is older.
func Owed(change RolledFor) RolledFor {
	key, _, _ := strings.Cut(change.Fingerprint, ":")
	content := owedContent
	if change.IsDeleted() {
		content = owedDeletion
	}
	return RolledFor{Fingerprint: key + ":" + content, Version: NoVersion, UID: change.UID}
}

// OwesDeletion reports whether the workload is still to be rolled because the source was deleted.
func (r RolledFor) OwesDeletion() bool {
	_, content, _ := strings.Cut(r.Fingerprint, ":")
	return content == owedDeletion
}

// IsOwed reports whether the workload is still to be rolled for the source, whatever the source has.
func (r RolledFor) IsOwed() bool {
	_, content, _ := strings.Cut(r.Fingerprint, ":")
	return content == owedContent || content == owedDeletion
}

// Owed returns the sources that the workload wants and is still to be rolled for according to its record, in no particular order.
func (w *Workload) Owed() []events.Source { return w.recorded(RolledFor.IsOwed) }

// Recorded returns the sources that the workload wants and that are in its record, in no particular order.
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
		// The record is an annotation: whoever may write it must not make the actuator read the stream for each line.
		if source = SourceNamed(source.Kind, w.ID.Namespace, source.Name); w.wants(source).Wanted() {
			list = append(list, source)
		}
	}
	return list
}
