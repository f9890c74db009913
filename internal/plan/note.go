package plan

import "github.com/keyturn/keyturn/internal/workload"

// Note returns what a patch writes on a workload that is not rolled now, and false if there is nothing to write. It is all that the record lacks, so
// one patch is enough. The decisions are about sources that the workload wants; waits says that it has to wait with what it is to be rolled for.
//
// If someone else has written another record, then the patch also restores the one that counts.
func Note(w *workload.Workload, decisions []Decision, waits bool) (workload.Write, bool) {
	entries := make(map[string]workload.RolledFor)
	for _, decision := range decisions {
		switch source := decision.Source.String(); {
		case decision.Records:
			entries[source] = decision.Record
		case decision.Unnoted && waits:
			entries[source] = workload.Owed(decision.Record)
		}
	}
	return workload.Write{Rolled: entries}, len(w.Notable(entries)) > 0 || w.IsRecordLost()
}
