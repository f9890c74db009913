package actuate

import (
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// repetitions says when workloads are to be compared with their sources again because someone else reverted a roll. The number of reverts is written
// on the workload, so that the next leader continues.
type repetitions struct {
	// delays are Options.RevertDelays.
	delays   [plan.RevertRetries]time.Duration
	debounce *debounce
	now      func() time.Time

	due map[workload.Key]time.Time
}

// add has a workload compared again later because of the changes whose rolls were reverted, unless they were reverted too often. If it is to be
// rolled for something else anyway, that is now.
func (r *repetitions) add(w *workload.Workload) {
	key := w.Key()
	for source, reverted := range w.Reverted {
		change := workload.RolledFor{Version: reverted.Version, UID: reverted.UID}
		count := w.Reverts(source, change)
		if count == 0 || count > plan.RevertRetries || w.Rolled[source].SameChange(change) {
			continue
		}
		due := r.now().Add(r.delays[count-1])
		if earlier, known := r.due[key]; !known || due.Before(earlier) {
			r.due[key] = due
		}
	}
	if r.debounce.byKey[key].owes() {
		r.hasten(key)
	}
}

// hasten makes a workload due now: it is to be rolled for something else anyway.
func (r *repetitions) hasten(key workload.Key) {
	if r.waits(key) {
		r.due[key] = r.now()
	}
}

// waits reports whether a workload is to be compared again, but not yet.
func (r *repetitions) waits(key workload.Key) bool {
	_, waits := r.due[key]
	return waits
}

// next returns when the next workload is due, and false if none is to be compared again.
func (r *repetitions) next() (time.Time, bool) {
	var next time.Time
	for _, due := range r.due {
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, !next.IsZero()
}

// revertedMessage says who reverted a rollout, and what comes next. The delays are Options.RevertDelays.
func revertedMessage(w *workload.Workload, started events.Outcome, delays [plan.RevertRetries]time.Duration) string {
	by := "another client"
	switch {
	case w.ManagerIsLast:
		by = fmt.Sprintf("the field manager %q", w.Manager)
	case w.Manager != "":
		// A manager that has only removed what the actuator wrote does not appear in managedFields for that.
		by += fmt.Sprintf(", perhaps the field manager %q,", w.Manager)
	}
	count := 0
	for source, change := range workload.ChangesOf(started) {
		count = max(count, w.Reverts(source, change))
	}
	next := "it is not rolled again for this change"
	if count < plan.RevertRetries {
		next = "it is rolled again in " + delays[count].String()
	}
	return by + " restored the pod template of before; " + next
}
