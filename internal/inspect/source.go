package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

type changeAt struct {
	ResourceVersion string `json:"resourceVersion"`
	UID             string `json:"uid"`
	// Time is when it was written, or zero if that is no longer known.
	Time time.Time `json:"time,omitzero"`
}

type explanation struct {
	Source string `json:"source"`
	// Keys are the keys that the pods read. Nil means all. Named says that they do not read the source: an annotation of the
	// workload only names it.
	Keys  []string `json:"keys"`
	Named bool     `json:"byNameOnly,omitempty"`
	// Asked is the annotation, with the item, by which the workload asks to be rolled for the source.
	Asked string `json:"askedBy,omitempty"`
	// Changed is the last change of the content, and Rolled the change that the workload was last rolled for. They are nil if there is none, or
	// if it is not known.
	Changed *changeAt `json:"lastChange,omitempty"`
	Rolled  *changeAt `json:"lastRolledFor,omitempty"`
	// Event is the id of the source's last event.
	Event string `json:"event,omitempty"`
	// Action is what would happen now, or "held" or "refused". Reason is why, in a word, and Sentence says it for people.
	Action   string `json:"action"`
	Reason   string `json:"reason,omitempty"`
	Sentence string `json:"sentence"`
	// Held is the reason why the action waits.
	Held string `json:"held,omitempty"`

	// never says that the content has not changed since the source was first seen.
	never bool
	// decision is what would happen now. Its reason is plan.None if nothing is decided.
	decision plan.Decision
}

// explain explains the last event of a source, or the error of reading it.
func explain(policy plan.Policy, w *workload.Workload, source events.Source, stored events.Stored, err error) (explanation, error) {
	e := explanation{Source: source.String(), Named: true}
	if ref := w.Reference(source); ref != nil {
		e.Keys, e.Named = ref.Keys, false
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
		e.Event, e.never = change.ID(), change.ChangedAt == ""
		if !e.never {
			e.Changed = &changeAt{ResourceVersion: change.ChangedAt, UID: change.UID}
		}
		e.addDates(change)
	case !errors.Is(err, events.ErrNotFound):
		return e, fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	e.decide(plan.Decide(w, change, plan.Memory{}, policy))
	return e, nil
}

func (e *explanation) decide(decision plan.Decision) {
	e.decision = decision
	e.Asked = decision.Want.Annotation
	if decision.Want.Item != "" {
		e.Asked += ": " + decision.Want.Item
	}
	e.Action, e.Reason, e.Sentence = decision.Reason.Action().String(), decision.Reason.String(), decision.Reason.Sentence()
	if decision.Hold != "" {
		e.Sentence += ": " + decision.Hold
	}
}

// isPending reports whether the workload is still to be rolled for the last change.
func (e *explanation) isPending() bool {
	action := e.decision.Reason.Action()
	return action == plan.Roll || action == plan.Hold
}

func (e *explanation) read() string {
	switch {
	case e.Named:
		return "by name only"
	case e.Keys == nil:
		return "all keys"
	}
	return workload.JoinKeys(e.Keys)
}

// text returns what would happen now: the action, the reason in a word, and its sentence.
func (e *explanation) text() string {
	text := e.Action
	if e.Held != "" {
		text = plan.Hold.String() + " (" + e.Held + "), then " + text
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text + ": " + e.Sentence
}

// dependencies returns the sources that concern a workload: those that it names, and those on the stream that its patterns match.
// Only the stream knows which store a secret is in.
func dependencies(ctx context.Context, origins events.Origins, reader *bus.Reader, w *workload.Workload) ([]events.Source, error) {
	list := w.Sources()
	for _, kind := range events.SourceKinds() {
		isOfKind := func(s events.Source) bool { return s.Kind == kind }
		if !w.OptIn.HasPatterns(kind) && (kind != events.KindOpenBao || !slices.ContainsFunc(list, isOfKind)) {
			continue
		}
		err := reader.State(ctx, origins.Filters(kind, w.ID.Namespace), func(stored events.Stored) error {
			change, err := events.ParseChange(stored.Event)
			if err == nil && w.OptIn.Wants(change.Source, w.Reference(change.Source), change.Match).Wanted() {
				// The source on the stream replaces the name by which the workload references it.
				list = slices.DeleteFunc(list, func(s events.Source) bool {
					return isOfKind(s) && workload.RefersTo(s.Kind, s.Name, change.Source)
				})
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

// addDates adds the times of changes that an event of the source is about.
func (e *explanation) addDates(change events.Change) {
	for _, at := range []*changeAt{e.Changed, e.Rolled} {
		if at == nil || !at.Time.IsZero() || at.UID != change.UID {
			continue
		}
		if at.ResourceVersion == change.ResourceVersion {
			at.Time = cmp.Or(change.WrittenAt, change.Time) // The time when the watcher saw it is the second best.
		} else if nanoseconds, err := strconv.ParseInt(at.ResourceVersion, 10, 64); err == nil && change.Source.Kind == events.KindOpenBao {
			at.Time = time.Unix(0, nanoseconds)
		}
	}
}

// readDates adds the times of changes that are only in the history, as far as that reaches back. It reads nothing if all times are known, as when
// the workload was rolled for the last event.
func readDates(ctx context.Context, origins events.Origins, reader *bus.Reader, source events.Source, e *explanation) error {
	isUndated := func(at *changeAt) bool { return at != nil && at.Time.IsZero() }
	if !isUndated(e.Changed) && !isUndated(e.Rolled) {
		return nil
	}
	query := bus.HistoryQuery{Clusters: []string{origins.Cluster}, Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}
	return readHistory(ctx, reader, query, e.addDates, nil)
}

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
