package inspect

import (
	"fmt"
	"io"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// writeTiming writes what its annotations say about when a workload is rolled, as far as that holds it now.
func writeTiming(w *workload.Workload, now time.Time, out io.Writer) {
	at, opens := w.Opening(now)
	next, recently := w.NextRoll(now)
	end, rolls, tooOften := w.TooOften(now)
	switch {
	case w.RollsNow():
		fmt.Fprintf(out, "It rolls for the next change whatever holds it: %s is set and has not been used.\n\n", workload.AnnotationRollNow)
	case w.Hold != "":
		fmt.Fprintf(out, "It is on hold: %s. Its changes roll it once %s is removed, or once %s has another value.\n\n",
			w.Hold, events.AnnotationHold, workload.AnnotationRollNow)
	case !opens:
		fmt.Fprintf(out, "It is not rolled: %s. Mend that, or set %s.\n\n", w.Windows(), workload.AnnotationRollNow)
	case at.After(now):
		fmt.Fprintf(out, "No window is open (%s): it is rolled from %s on, or once %s has another value.\n\n",
			w.Windows(), at.UTC().Format(time.RFC3339), workload.AnnotationRollNow)
	case recently:
		fmt.Fprintf(out, "It was rolled recently: its next roll begins at %s at the earliest, or once %s has another value.\n\n",
			next.UTC().Format(time.RFC3339), workload.AnnotationRollNow)
	case tooOften:
		fmt.Fprintf(out, "It was rolled too often (%s): its next roll begins at %s at the earliest, or once %s has another value. "+
			"Find what changes its sources or undoes its rollouts each time.\n\n", rolls, end.UTC().Format(time.RFC3339), workload.AnnotationRollNow)
	}
}
