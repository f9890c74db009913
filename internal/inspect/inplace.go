package inspect

import (
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// noteInPlace adds how the pods of a workload are asked to reload after a change instead of being replaced, and for which sources they
// are replaced nevertheless.
func (r *report) noteInPlace(w *workload.Workload, delay time.Duration) {
	if w.InPlace == nil {
		return
	}
	lines := []string{fmt.Sprintf("Its pods are asked to reload at %s, instead of being replaced, %s after a change, once their files are new.",
		w.InPlace.Endpoint, delay)}
	said := make(map[string]bool)
	for _, source := range w.Sources() {
		if why := w.InPlace.Refuses(source); why != "" && !said[why] {
			said[why] = true
			lines = append(lines, fmt.Sprintf("They are replaced where %s.", why))
		}
	}
	r.noteLines(lines...)
}

// reloadInPlace adds to the sources that would roll a workload that the pods reload instead, or why they do not. This is the same for all of
// them, because one roll is for all changes.
func reloadInPlace(w *workload.Workload, delay time.Duration, rows []explanation) {
	var doing []plan.Decision
	for _, row := range rows {
		if row.decision.Reason.Action() != plan.Skip {
			doing = append(doing, row.decision)
		}
	}
	why, inPlace := plan.InPlace(w, doing)
	for i := range rows {
		row := &rows[i]
		switch {
		case row.decision.Reason.Action() != plan.Roll:
		case inPlace:
			row.Action = "reload"
			row.Sentence += fmt.Sprintf("; at %s, %s after the change", w.InPlace.Endpoint, delay)
		case why != "":
			row.Sentence += "; not in place: " + why
		}
	}
}
