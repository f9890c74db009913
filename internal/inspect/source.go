package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	// Time is when it was written, or zero if unknown.
	Time time.Time `json:"time,omitzero"`
}

type explanation struct {
	Source string `json:"source"`
	// Keys are the keys that the pods read. Nil means all. Named says that the pods do not read the source, and only an annotation of the workload
	// names it.
	Keys  []string `json:"keys"`
	Named bool     `json:"byNameOnly,omitempty"`
	// Uncounted are the keys of these that do not count, each with the reason: an annotation, or knowledge about the writer of the source.
	Uncounted map[string]string `json:"uncountedKeys,omitempty"`
	// Asked is the annotation, with the item, by which the workload opts in to the source.
	Asked string `json:"askedBy,omitempty"`
	// Changed is the last change of the content, and Rolled the change of the workload's last roll. They are nil if there is none or it is unknown.
	Changed *changeAt `json:"lastChange,omitempty"`
	Rolled  *changeAt `json:"lastRolledFor,omitempty"`
	// Event is the id of the source's last event.
	Event string `json:"event,omitempty"`
	// Action is what would happen now, or "held" or "refused". Reason is the reason in a word, and Sentence for users.
	Action   string `json:"action"`
	Reason   string `json:"reason,omitempty"`
	Sentence string `json:"sentence"`
	// Held is the reason why the action waits.
	Held string `json:"held,omitempty"`

	// problem is the problem of the source's annotations.
	problem string
	// never says that the content has not changed since the source was first seen, and required that the pods do not start without the source.
	never, required bool
	// decision is the present decision. Its reason is plan.None if there is none.
	decision plan.Decision
}

// annotationIgnoreKeys is the annotation of a source that lists keys that do not count.
const annotationIgnoreKeys = "keyturn.dev/ignore-keys"

// leaveOut adds the keys that do not count, with the reasons.
func (e *explanation) leaveOut(change events.Change) {
	for _, name := range e.decision.Uncounted {
		if e.Uncounted == nil {
			e.Uncounted = make(map[string]string)
		}
		switch why := change.Keys[name].Ignored; {
		case slices.Contains(e.decision.Want.Except, name):
			e.Uncounted[name] = workload.AnnotationRollOn
		case why == events.IgnoredByAnnotation:
			e.Uncounted[name] = annotationIgnoreKeys
		default:
			e.Uncounted[name] = why
		}
	}
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
	text := workload.JoinKeys(e.Keys)
	switch {
	case e.Named:
		text = "by name only"
	case e.Keys == nil:
		text = "all keys"
	}
	if len(e.Uncounted) == 0 {
		return text
	}
	by := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(e.Uncounted)) {
		by[e.Uncounted[name]] = append(by[e.Uncounted[name]], name)
	}
	var out []string
	for _, why := range slices.Sorted(maps.Keys(by)) {
		out = append(out, workload.JoinKeys(by[why])+" ("+why+")")
	}
	return text + " but not " + strings.Join(out, ", ")
}

// text describes what would happen now: the action, the reason in a word, and its sentence.
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
			change, err := stored.Change()
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

// addDates adds the times of changes in the source's event.
func (e *explanation) addDates(change events.Change) {
	for _, at := range []*changeAt{e.Changed, e.Rolled} {
		if at == nil || !at.Time.IsZero() || at.UID != change.UID {
			continue
		}
		if at.ResourceVersion == change.ResourceVersion {
			at.Time = cmp.Or(change.WrittenAt, change.Time) // Otherwise, use the time when the watcher saw the change.
		} else if nanoseconds, err := strconv.ParseInt(at.ResourceVersion, 10, 64); err == nil && change.Source.Kind == events.KindOpenBao {
			at.Time = time.Unix(0, nanoseconds)
		}
	}
}

// readDates adds the times of changes that are only in the history, as far as it reaches back. It reads nothing if all times are known, as when the
// workload was rolled for the last event.
func readDates(ctx context.Context, origins events.Origins, reader *bus.Reader, source events.Source, e *explanation) error {
	isUndated := func(at *changeAt) bool { return at != nil && at.Time.IsZero() }
	if !isUndated(e.Changed) && !isUndated(e.Rolled) {
		return nil
	}
	query := bus.HistoryQuery{Clusters: []string{origins.Cluster}, Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}
	return readHistory(ctx, reader, query, e.addDates, nil)
}

// reloadInPlace adds to the rows that would roll a workload that its pods reload instead, or why they do not. This is the same for all rows, because
// one roll is for all changes.
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
