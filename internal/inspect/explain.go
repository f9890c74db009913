// Package inspect implements the actuator's subcommands: explain a workload, list the history, compare it with what Reloader did, list the
// clusters of a stream, and list dead letters. It reads the streams and workloads, and writes text. It changes nothing.
package inspect

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// ExplainOptions has everything that an explanation depends on.
type ExplainOptions struct {
	// Origins are the clusters whose changes the actuator acts on.
	Origins events.Origins
	// Kinds are the kinds that the actuator rolls. Empty means all that it can roll.
	Kinds workload.Kinds
	// Namespaces are the namespaces that the actuator serves. Empty means all, except IgnoreNamespaces.
	Namespaces, IgnoreNamespaces []string
	// DryRun says that the actuator patches nothing, and Posts that it posts to a webhook instead of rolling.
	DryRun, Posts bool
	// Reading, ReloadDelay and Policy are those of the actuator.
	Reading     workload.Reading
	ReloadDelay time.Duration
	Policy      plan.Policy
	// Unknown are the names of Secrets with settings of the actuator that are not known here.
	Unknown []string
	// Clients read the workload.
	Clients workload.Clients
	// Now is the time of the explanation, for windows and other limits in time.
	Now time.Time
	// TraceURL is a template of links to traces: see events.ValidateTraceURL. If it is empty, only ids are written.
	TraceURL string
	// View is how to write the explanation.
	View View
}

// Explain writes what a workload such as "deployment/web" depends on, what it was last rolled for and when, what it waits for, and what would
// happen now and why. It decides in the same way as the actuator, and changes nothing.
func Explain(ctx context.Context, options ExplainOptions, reader *bus.Reader, name, namespace string, out io.Writer) error {
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
	r := &report{Cluster: options.Origins.Cluster, Workload: w.ID, now: options.Now, Pending: []string{}, Sources: []explanation{}}
	for _, problem := range w.Problems {
		r.Problems = append(r.Problems, problem.Error())
	}
	if err := r.explain(ctx, options, reader, w, runners); err != nil {
		return err
	}
	if done, err := options.View.Format.Encode(out, r); done || err != nil {
		return err
	}
	return r.writeText(out, options.View)
}

// explain adds everything that is known about the workload.
func (r *report) explain(
	ctx context.Context, options ExplainOptions, reader *bus.Reader, w *workload.Workload, runners []*workload.Workload,
) error {
	last, err := r.noteLastOutcome(ctx, reader, w, options.TraceURL)
	if err != nil {
		return err
	}
	if told := w.KeepingStart(last); told != nil {
		w = told
	}
	r.noteWaiting(w)
	within, known, err := readNamespace(ctx, options, w.ID.Namespace)
	if err != nil {
		return err
	}
	if !known {
		r.noteState(plan.None, "Its namespace may not be read: holds and windows that are annotated there are not known here.")
	}
	timing := r.timing(w.In(within))
	timing.known = known
	if timing.said != "" {
		r.noteState(timing.reason, timing.said)
	}
	if len(options.Unknown) > 0 {
		r.note("What the actuator has from a Secret is not known here, such as a webhook: see %s, or ask explain in the actuator's pod.",
			strings.Join(options.Unknown, ", "))
	}
	r.noteAborted(w, runners)
	r.noteInPlace(w, options.ReloadDelay)
	if options.DryRun {
		r.noteState(plan.None, "The actuator runs with --dry-run: it decides what follows, and patches nothing.")
	}
	if why := options.leavesAlone(w); why != "" {
		r.noteState(plan.None, why)
		return nil
	}
	return r.explainSources(ctx, options, reader, w, timing)
}

// leavesAlone returns why no change rolls a workload, or "" if changes may.
func (o *ExplainOptions) leavesAlone(w *workload.Workload) string {
	switch {
	case o.Posts:
		return "It is not rolled: an actuator with --webhook-url posts to that instead."
	case !kube.Includes(o.Namespaces, o.IgnoreNamespaces, w.ID.Namespace):
		return "It is not rolled: an actuator with these flags leaves workloads of the namespace " + w.ID.Namespace + " alone."
	case o.ignores(w.ID.Kind):
		return "It is not rolled: an actuator with these flags leaves workloads of the kind " + w.ID.Kind + " alone."
	case w.Deaf:
		return "It is left alone, whatever it asks for: it is being deleted, belongs to a controller, or keeps another one's manifest."
	case w.OptIn.None():
		return "It is not rolled: " + workload.AnnotationRollOn + " is none, which counts whatever else asks for it, such as --roll-all."
	case w.OptIn.Empty():
		return "It asks for nothing: annotate it, for example with " + workload.AnnotationRollOn + ": auto"
	}
	return ""
}

// ignores reports whether the actuator rolls no workloads of a kind.
func (o *ExplainOptions) ignores(kind string) bool {
	_, rolled := o.Kinds.Named(kind)
	return len(o.Kinds) > 0 && !rolled
}

// explainSources adds a row for each source that the workload depends on, and what is pending.
func (r *report) explainSources(
	ctx context.Context, options ExplainOptions, reader *bus.Reader, w *workload.Workload, timing obstacle,
) error {
	sources, err := dependencies(ctx, options.Origins, reader, w)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		r.noteState(plan.None, "It depends on no source.")
		return nil
	}
	r.Sources = make([]explanation, len(sources))
	for i, source := range sources {
		stored, err := options.Origins.Last(ctx, reader, source)
		if r.Sources[i], err = explain(options.Policy, w, source, stored, err); err != nil {
			return err
		}
		if err := readDates(ctx, options.Origins, reader, source, &r.Sources[i]); err != nil {
			return err
		}
	}
	reloadInPlace(w, options.ReloadDelay, r.Sources)
	if r.Held, err = readHeld(ctx, reader, r.Cluster, w.ID); err != nil {
		return err
	}
	r.notePending(timing)
	return nil
}
