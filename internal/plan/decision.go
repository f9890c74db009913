package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Decision is what one workload needs because of one source.
type Decision struct {
	Source events.Source
	Reason Reason
	// Want is what the workload's annotations say about the source.
	Want workload.Want
	// Keys are the keys that the event changed and that the pods read.
	Keys []string
	// Record is what the workload's record says about the source afterwards; with Skip, what it would say.
	Record workload.RolledFor
	// Anew says that the source may be a different object from the one that the pods have read, or was created by the change.
	Anew bool
	// Hold is why the source is on hold. It is set with SourceOnHold.
	Hold string
	// Records says that the record is to take up Record with the next patch, or alone once the workload has nothing else to do. Unnoted says that the
	// workload is to be rolled, and that nothing on it shows that. Only Decide sets them.
	Records, Unnoted bool
	// Contradicted says that the resourceVersions of the workload and the source are not comparable, and were not compared.
	Contradicted bool
}

// Owes reports whether the workload is to be rolled for the source, now or once what holds that is over.
func (d Decision) Owes() bool {
	return d.Reason.Action() == Roll || d.Reason == SourceOnHold || d.Reason == Aborted
}
