// Package inspect contains the queries of users' commands: it explains a workload, lists the history, compares it with Reloader's rolls, and lists
// the clusters of a stream and dead letters. It reads the streams and workloads, and writes text. It changes nothing.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// ExplainOptions contains everything that an explanation depends on.
type ExplainOptions struct {
	// Origins are the clusters whose changes the actuator acts on.
	Origins events.Origins
	// Kinds are the kinds that the actuator rolls.
	Kinds workload.Kinds
	// Namespaces are the namespaces that the actuator serves. Empty means all, except IgnoreNamespaces.
	Namespaces, IgnoreNamespaces []string
	// DryRun says that the actuator patches nothing, and Posts that it posts to a webhook instead of rolling.
	DryRun, Posts bool
	// Reading, ReloadDelay and Policy belong to the actuator.
	Reading     workload.Reading
	ReloadDelay time.Duration
	Policy      plan.Policy
	// Unknown are the names of Secrets with settings of the actuator that are unknown here.
	Unknown []string
	// Clients read the workload.
	Clients workload.Clients
	// Now is the time of the explanation, for windows and other limits in time.
	Now time.Time
	// TraceURL is a template of links to traces: see events.ValidateTraceURL. If it is empty, only ids are written.
	TraceURL string
}

// Explain returns the sources that a workload such as "deployment/web" depends on, its last roll, what it waits for, and what would happen now and
// why. It decides in the same way as the actuator, and changes nothing.
func Explain(ctx context.Context, options ExplainOptions, reader *bus.Reader, name, namespace string) (*Report, error) {
	w, err := readWorkload(ctx, options, name, namespace)
	if err != nil {
		return nil, err
	}
	runners, err := readRunners(ctx, options, w)
	if err != nil {
		return nil, err
	}
	if len(runners) > 0 {
		w = w.RunBy(runners...)
	}
	r := &Report{Cluster: options.Origins.Cluster, Workload: w.ID, now: options.Now, Pending: []string{}, Sources: []explanation{}}
	for _, problem := range w.Problems {
		r.Problems = append(r.Problems, problem.Error())
	}
	return r, r.explain(ctx, options, reader, w, runners)
}

// explain adds all information about the workload.
func (r *Report) explain(
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
		r.note("What the actuator has from a Secret is not known here, such as a webhook: see %s.", strings.Join(options.Unknown, ", "))
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
		return "It is not rolled: an actuator with a webhook-url in --reloader posts to that instead."
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
	return !rolled
}

// explainSources adds a row for each source that the workload depends on, and the pending changes.
func (r *Report) explainSources(
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
		if r.Sources[i], err = explain(options, w, source, stored, err); err != nil {
			return err
		}
		if problem := r.Sources[i].problem; problem != "" {
			r.Problems = append(r.Problems, source.String()+": "+problem)
		}
		if err := readDates(ctx, options.Origins, reader, source, &r.Sources[i]); err != nil {
			return err
		}
	}
	reloadInPlace(w, options.ReloadDelay, r.Sources)
	if r.Held, err = readHeld(ctx, reader, r.Cluster, w.ID); err != nil {
		return err
	}
	r.notePending(r.endless(w, timing))
	return nil
}

// noteInPlace adds how the pods of a workload are asked to reload after a change, and for which sources they are replaced nevertheless.
func (r *Report) noteInPlace(w *workload.Workload, delay time.Duration) {
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

// explain explains the last event of a source, or the error of reading it.
func explain(options ExplainOptions, w *workload.Workload, source events.Source, stored events.Stored, err error) (explanation, error) {
	e := explanation{Source: source.String(), Named: true}
	if ref := w.Reference(source); ref != nil {
		e.Keys, e.Named, e.required = ref.Keys, false, !ref.Optional && !ref.ByPull
	}
	if last, ok := w.Rolled[source.String()]; ok && last.Version != workload.NoVersion {
		e.Rolled = &changeAt{ResourceVersion: last.Version, UID: last.UID}
	}
	change := events.Change{Source: source}
	switch {
	case err == nil:
		if change, err = stored.Change(); err != nil {
			e.Action, e.Sentence = plan.Skip.String(), fmt.Sprintf("its last event cannot be read: %v", err)
			return e, nil
		}
		e.Event, e.never, e.problem = change.ID(), change.ChangedAt == "", change.Problem
		if !e.never {
			e.Changed = &changeAt{ResourceVersion: change.ChangedAt, UID: change.UID}
		}
		e.addDates(change)
	case !errors.Is(err, events.ErrNotFound):
		return e, fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	e.decide(plan.Decide(w, change, plan.Memory{Now: options.Now}, options.Policy))
	e.leaveOut(change)
	return e, nil
}
