package inspect

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// readNamespace reads what the annotations of a namespace say, and writes it if they may not be read.
func readNamespace(ctx context.Context, options ExplainOptions, name string, out io.Writer) (workload.Namespace, error) {
	namespace, err := options.Clients.Typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprint(out, "Its namespace may not be read: holds and windows that are annotated there are not known here.\n\n")
		return workload.Namespace{}, nil
	case apierrors.IsNotFound(err):
		return workload.Namespace{}, nil
	case err != nil:
		return workload.Namespace{}, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return workload.ReadNamespace(name, namespace.Annotations), nil
}

// writeTiming writes what its annotations, and those of its namespace, say about when a workload is rolled, as far as that holds it now.
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
