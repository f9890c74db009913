package inspect

import (
	"fmt"
	"io"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// writeInPlace writes how the pods of a workload are asked to reload after a change instead of being replaced, and after which they are not.
func writeInPlace(w *workload.Workload, delay time.Duration, out io.Writer) {
	if w.InPlace == nil {
		return
	}
	fmt.Fprintf(out, "Its pods are asked to reload at %s, instead of being replaced, %s after a change, once their files are new.\n",
		w.InPlace.Endpoint, delay)
	said := make(map[string]bool)
	for _, source := range w.Sources() {
		if why := w.InPlace.Refuses(source); why != "" && !said[why] {
			said[why] = true
			fmt.Fprintf(out, "They are replaced where %s.\n", why)
		}
	}
	fmt.Fprintln(out)
}

// reloadInPlace says of the sources that would roll a workload that its pods reload instead, or else why they do not. One roll is for all changes.
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
			row.now = fmt.Sprintf("reload: %s; at %s, %s after the change", row.decision.Reason.Sentence(), w.InPlace.Endpoint, delay)
		case why != "":
			row.now += "; not in place: " + why
		}
	}
}
