package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// changeAt is a change of a source.
type changeAt struct {
	ResourceVersion string `json:"resourceVersion"`
	// UID is the UID of the source.
	UID string `json:"uid"`
	// Time is when it was written, or zero if that is no longer known.
	Time time.Time `json:"time,omitzero"`
}

// explanation is what a source means to a workload.
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
		e.dates(change)
	case !errors.Is(err, events.ErrNotFound):
		return e, fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	e.decide(plan.Decide(w, change, plan.Memory{}, policy))
	return e, nil
}

// decide adds what would happen now.
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

func (e *explanation) asked() string { return cmp.Or(e.Asked, "-") }

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
