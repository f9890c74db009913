package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// ExplainOptions are what an explanation depends on.
type ExplainOptions struct {
	// Origins are the clusters whose changes the actuator acts on.
	Origins events.Origins
	// Kinds are those that the actuator rolls. Empty: all that it can.
	Kinds workload.Kinds
	// Clients read the workload.
	Clients workload.Clients
	// Reading is how the actuator reads workloads.
	Reading workload.Reading
	// ReloadDelay is --reload-delay of the actuator.
	ReloadDelay time.Duration
	// Policy is that of the actuator.
	Policy plan.Policy
	// Now is when that is asked, for the windows in which workloads are rolled.
	Now time.Time
	// TraceURL is a template of links to traces: see events.ValidateTraceURL. Empty writes only the id.
	TraceURL string
}

// Explain writes what a workload such as "deployment/web" depends on, what it was last rolled for and when, and what would happen now
// and why. It decides as the actuator does, and changes nothing.
func Explain(ctx context.Context, options ExplainOptions, reader *events.Reader, name, namespace string, out io.Writer) error {
	w, err := readWorkload(ctx, options, name, namespace)
	if err != nil {
		return err
	}
	runners, err := readRunners(ctx, options, w)
	if err != nil {
		return err
	}
	if len(runners) > 0 {
		w = w.RunBy(runners...)
	}
	fmt.Fprintf(out, "%s in namespace %s of cluster %s\n\n", w.ID, w.ID.Namespace, options.Origins.Cluster)
	for _, problem := range w.Problems {
		fmt.Fprintf(out, "! %s\n", problem)
	}
	if len(w.Problems) > 0 {
		fmt.Fprintln(out)
	}
	last, err := writeLastOutcome(ctx, reader, options.Origins.Cluster, w, options.TraceURL, out)
	if err != nil {
		return err
	}
	if told, ok := w.KeepingStart(last); ok {
		w = told
	}
	if err := writeHeld(ctx, reader, options.Origins.Cluster, w.ID, out); err != nil {
		return err
	}
	if w.IsPausedBySomeone() {
		fmt.Fprint(out, "It is paused (spec.paused) by someone else. Keyturn does not change that, and its rollouts wait.\n\n")
	}
	within, err := readNamespace(ctx, options, namespace, out)
	if err != nil {
		return err
	}
	writeTiming(w.In(within), options.Now, out)
	writeAborted(w, runners, out)
	writeInPlace(w, options.ReloadDelay, out)
	switch {
	case options.ignores(w.ID.Kind):
		fmt.Fprintf(out, "It is not rolled: an actuator with these flags leaves workloads of the kind %s alone.\n", w.ID.Kind)
		return nil
	case w.Deaf:
		fmt.Fprintln(out, "It is left alone, whatever it asks for: it is being deleted, belongs to a controller, or keeps another one's manifest.")
		return nil
	case w.OptIn.Empty():
		fmt.Fprintf(out, "It asks for nothing: annotate it, for example with %s: auto\n", workload.AnnotationRollOn)
		return nil
	}
	return writeSources(ctx, options, reader, w, out)
}

// ignores reports whether the actuator rolls no workloads of a kind.
func (o *ExplainOptions) ignores(kind string) bool {
	_, rolled := o.Kinds.Named(kind)
	return len(o.Kinds) > 0 && !rolled
}

// readNamed reads a workload from the API server.
func readNamed(ctx context.Context, options ExplainOptions, name, namespace string) (*workload.Workload, error) {
	kinds := append(workload.BuiltIn(), workload.ArgoRollout(), workload.Job())
	for _, rolled := range options.Kinds {
		if _, known := kinds.Named(rolled.Name); known {
			kinds = kinds.With(rolled) // It may have its pods replaced in another way.
		} else {
			kinds = append(kinds, rolled)
		}
	}
	kindName, object, ok := strings.Cut(name, "/")
	kind, known := kinds.Named(kindName)
	if !ok || !known || object == "" {
		return nil, fmt.Errorf("workload %q: want <kind>/<name>, with a kind of %s", name, strings.Join(kinds.Names(), ", "))
	}
	obj, err := kind.Objects(options.Clients, namespace).Get(ctx, object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w %s in namespace %s", errMissing, name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s in namespace %s: %w", name, namespace, err)
	}
	w, ok := workload.Read(kind, obj, options.Reading)
	if !ok {
		return nil, fmt.Errorf("reading %s in namespace %s: the API server did not return a %s", name, namespace, kind.Title)
	}
	return w, nil
}

// writeSources writes a line for each source that the workload depends on.
func writeSources(ctx context.Context, options ExplainOptions, reader *events.Reader, w *workload.Workload, out io.Writer) error {
	sources, err := dependencies(ctx, options.Origins, reader, w)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		fmt.Fprintln(out, "It depends on no source.")
		return nil
	}
	rows := make([]explanation, len(sources))
	for i, source := range sources {
		stored, err := options.Origins.Last(ctx, reader, source)
		if rows[i], err = explain(options.Policy, w, source, stored, err); err != nil {
			return err
		}
	}
	reloadInPlace(w, options.ReloadDelay, rows)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SOURCE\tREAD\tASKED BY\tLAST CHANGE\tLAST ROLLED FOR\tNOW")
	for i, source := range sources {
		row := rows[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", source, row.read, row.asked, row.changed, row.rolled, row.now)
	}
	return table.Flush()
}
