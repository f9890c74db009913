package plan

import (
	"maps"

	"github.com/keyturn/keyturn/internal/workload"
)

// Note returns what a patch writes on a workload that is not rolled now, and false if there is nothing to write. It is all that the record lacks, so
// one patch is enough:
//
//	decisions  about the sources that the workload wants
//	waits      says that the workload has to wait with what it is to be rolled for
//	reverted   the changes of a roll that someone has reverted; before is the record from before that roll, as far as it is known
//
// If someone else has written another record, then the patch also restores the one that counts.
func Note(w *workload.Workload, decisions []Decision, waits bool, reverted, before map[string]workload.RolledFor) (workload.Write, bool) {
	entries := make(map[string]workload.RolledFor)
	for _, decision := range decisions {
		switch source := decision.Source.String(); {
		case decision.Records:
			entries[source] = decision.Record
		case decision.Unnoted && waits:
			entries[source] = workload.Owed(decision.Record)
		}
	}
	maps.Copy(entries, w.Unrolled(reverted, before))
	write := workload.Write{Rolled: entries, Reverted: w.RevertedAgain(reverted)}
	return write, len(w.Notable(entries)) > 0 || len(write.Reverted) > 0 || w.IsRecordLost()
}
