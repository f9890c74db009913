package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	// Unknown are the names of Secrets with settings of the actuator that are not known here.
	Unknown []string
	// Clients read the workload.
	Clients workload.Clients
	// Reading is how the actuator reads workloads.
	Reading workload.Reading
	// ReloadDelay is --reload-delay of the actuator.
	ReloadDelay time.Duration
	// Policy is the actuator's policy.
	Policy plan.Policy
	// Now is the time of the explanation, for windows and other limits in time.
	Now time.Time
	// TraceURL is a template of links to traces: see events.ValidateTraceURL. If it is empty, only ids are written.
	TraceURL string
	// View is how to write the explanation.
	View View
}

// Explain writes what a workload such as "deployment/web" depends on, what it was last rolled for and when, what it waits for, and what would
// happen now and why. It decides in the same way as the actuator, and changes nothing.
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
	r := newReport(options.Origins.Cluster, w.ID, options.Now)
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
	ctx context.Context, options ExplainOptions, reader *events.Reader, w *workload.Workload, runners []*workload.Workload,
) error {
	last, err := r.noteLastOutcome(ctx, reader, w, options.TraceURL)
	if err != nil {
		return err
	}
	if told, ok := w.KeepingStart(last); ok {
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
		r.noteState(timing.reason, "%s", timing.said)
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
	switch {
	case options.Posts:
		r.noteState(plan.None, "It is not rolled: an actuator with --webhook-url posts to that instead.")
		return nil
	case !kube.Includes(options.Namespaces, options.IgnoreNamespaces, w.ID.Namespace):
		r.noteState(plan.None, "It is not rolled: an actuator with these flags leaves workloads of the namespace %s alone.", w.ID.Namespace)
		return nil
	case options.ignores(w.ID.Kind):
		r.noteState(plan.None, "It is not rolled: an actuator with these flags leaves workloads of the kind %s alone.", w.ID.Kind)
		return nil
	case w.Deaf:
		r.noteState(plan.None,
			"It is left alone, whatever it asks for: it is being deleted, belongs to a controller, or keeps another one's manifest.")
		return nil
	case w.OptIn.None():
		r.noteState(plan.None, "It is not rolled: %s is none, which counts whatever else asks for it, such as --roll-all.", workload.AnnotationRollOn)
		return nil
	case w.OptIn.Empty():
		r.noteState(plan.None, "It asks for nothing: annotate it, for example with %s: auto", workload.AnnotationRollOn)
		return nil
	}
	return r.explainSources(ctx, options, reader, w, timing)
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
			kinds = kinds.With(rolled) // Its pods may be replaced in another way.
		} else {
			kinds = append(kinds, rolled)
		}
	}
	kindName, object, ok := strings.Cut(name, "/")
	kind, known := kindOf(kinds, kindName)
	if !ok || !known || object == "" {
		return nil, fmt.Errorf("workload %q: want <kind>/<name>, with a kind of %s", name, strings.Join(kinds.Names(), ", "))
	}
	objects := kind.Objects(options.Clients, namespace)
	obj, err := reads{listed(objects.List), objects.Get}.read(ctx, object)
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

// explainSources adds a row for each source that the workload depends on, and what is pending.
func (r *report) explainSources(
	ctx context.Context, options ExplainOptions, reader *events.Reader, w *workload.Workload, timing obstacle,
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
