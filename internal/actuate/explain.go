package actuate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// Explain writes what a workload, given as "deployment/web", depends on, what it was last rolled for and when, and what
// would happen now and why. It decides as the actuator does, and changes nothing. Of the options it reads Cluster, StoresFrom,
// RollAll, TraceURL, Client.
func Explain(ctx context.Context, options Options, reader *events.Reader, workloadName, namespace string, out io.Writer) error {
	kindName, name, ok := strings.Cut(workloadName, "/")
	k, known := workload.BuiltIn().Named(kindName)
	if !ok || !known || name == "" {
		return fmt.Errorf("workload %q: want <kind>/<name>, with a kind of %s", workloadName, strings.Join(workload.BuiltIn().Names(), ", "))
	}
	obj, err := k.Objects(workload.Clients{Typed: options.Client}, namespace).Get(ctx, name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no %s in namespace %s", workloadName, namespace)
	}
	if err != nil {
		return fmt.Errorf("reading %s in namespace %s: %w", workloadName, namespace, err)
	}
	w, ok := workload.Read(k, obj, options.RollAll)
	if !ok {
		return fmt.Errorf("reading %s in namespace %s: the answer is no %s", workloadName, namespace, k.Title)
	}
	e := explanation{reader: reader, options: options, out: out, w: w}
	return e.write(ctx)
}

type explanation struct {
	reader  *events.Reader
	options Options
	out     io.Writer
	w       *workload.Workload
}

func (e *explanation) write(ctx context.Context) error {
	fmt.Fprintf(e.out, "%s in namespace %s of cluster %s\n\n", e.w.ID, e.w.ID.Namespace, e.options.Cluster)
	for _, problem := range e.w.Problems {
		fmt.Fprintf(e.out, "! %s\n", problem)
	}
	if len(e.w.Problems) > 0 {
		fmt.Fprintln(e.out)
	}
	if err := e.writeLast(ctx); err != nil {
		return err
	}
	if e.w.OptIn.Empty() {
		fmt.Fprintf(e.out, "It asks for nothing: annotate it, for example with %s: auto\n", workload.AnnotationRollOn)
		return nil
	}
	sources, err := e.sources(ctx)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		fmt.Fprintln(e.out, "It depends on no source.")
		return nil
	}
	table := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SOURCE\tREAD\tASKED BY\tLAST CHANGE\tLAST ROLLED FOR\tNOW")
	for _, source := range sources {
		if err := e.writeSource(ctx, table, source); err != nil {
			return err
		}
	}
	return table.Flush()
}

// writeLast writes the last outcome at the workload.
func (e *explanation) writeLast(ctx context.Context) error {
	stored, err := e.reader.Last(ctx, events.OutcomeSubject(e.options.Cluster, e.w.ID))
	if errors.Is(err, events.ErrNotFound) {
		fmt.Fprint(e.out, "It was never rolled.\n\n")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the last outcome: %w", err)
	}
	outcome, err := stored.Outcome()
	if err != nil {
		fmt.Fprintf(e.out, "Its last outcome cannot be read: %v\n\n", err)
		return nil
	}
	causes := make([]string, 0, len(outcome.Sources))
	for _, source := range outcome.Sources {
		causes = append(causes, source.Source)
	}
	if outcome.StartedAt.IsZero() {
		fmt.Fprintf(e.out, "It was to be rolled for %s: %s at %s (%s)\n", strings.Join(causes, ", "), outcome.Verb,
			outcome.Time.Format(time.RFC3339), outcome.Reason)
	} else {
		fmt.Fprintf(e.out, "It was last rolled at %s for %s: %s (%s)\n", outcome.StartedAt.Format(time.RFC3339),
			strings.Join(causes, ", "), outcome.Verb, outcome.Reason)
	}
	if id := outcome.Trace.ID(); id != "" {
		fmt.Fprintf(e.out, "Trace: %s\n", cmp.Or(outcome.Trace.Link(e.options.TraceURL), id))
	}
	fmt.Fprintln(e.out)
	return nil
}

// sources lists what concerns the workload: by name, and by the patterns that it has of what the stream knows. In which
// store a secret is, only the stream knows.
func (e *explanation) sources(ctx context.Context) ([]events.Source, error) {
	list := e.w.Sources()
	for _, kind := range events.SourceKinds() {
		of := func(s events.Source) bool { return s.Kind == kind }
		if !e.w.OptIn.HasPatterns(kind) && (kind != events.KindOpenBao || !slices.ContainsFunc(list, of)) {
			continue
		}
		filters := []string{events.NamespaceFilter(e.options.Cluster, kind, e.w.ID.Namespace)}
		if kind == events.KindOpenBao {
			filters = []string{events.KindFilter(e.options.Cluster, kind)}
			for _, cluster := range e.options.StoresFrom {
				filters = append(filters, events.KindFilter(cluster, kind))
			}
		}
		err := e.reader.State(ctx, filters, func(stored events.Stored) error {
			change, err := events.ParseChange(stored.Event)
			if err == nil && e.w.OptIn.Wants(change.Source, e.w.Reference(change.Source), change.Match).Wanted() {
				// The name under which the workload has it stands for it no longer.
				list = slices.DeleteFunc(list, func(s events.Source) bool { return of(s) && workload.RefersTo(s.Kind, s.Name, change.Source) })
				list = append(list, change.Source)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the sources of kind %s: %w", kind, err)
		}
	}
	slices.SortFunc(list, func(a, b events.Source) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list), nil
}

func (e *explanation) writeSource(ctx context.Context, table io.Writer, source events.Source) error {
	reads := "by name only"
	if ref := e.w.Reference(source); ref != nil {
		reads = "all keys"
		if ref.Keys != nil {
			reads = strings.Join(shorten(ref.Keys), ", ")
		}
	}
	rolledFor := "-"
	if last, ok := e.w.Rolled[source.String()]; ok {
		rolledFor = "resourceVersion " + last.Version
	}
	stored, err := e.options.lastOf(ctx, e.reader, source)
	if errors.Is(err, events.ErrNotFound) {
		fmt.Fprintf(table, "%s\t%s\t-\t-\t%s\tskip: %s\n", source, reads, rolledFor, plan.Unknown.Sentence())
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	change, err := stored.Change()
	if err != nil {
		fmt.Fprintf(table, "%s\t%s\t-\t-\t%s\tskip: its last event cannot be read: %v\n", source, reads, rolledFor, err)
		return nil
	}
	decision := plan.Decide(e.w, change, nil)
	changed := "never"
	if change.ChangedAt != "" {
		changed = "resourceVersion " + change.ChangedAt
	}
	by := decision.Want.Annotation
	if decision.Want.Item != "" {
		by += ": " + decision.Want.Item
	}
	if by == "" {
		by = "-"
	}
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s: %s\n", source, reads, by, changed, rolledFor,
		decision.Reason.Action(), decision.Reason.Sentence())
	return nil
}
