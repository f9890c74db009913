package inspect

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// explanation is what a source means to a workload, by the columns of the table.
type explanation struct {
	read, asked, changed, rolled, now string
	// decision is what would happen now. Its reason is plan.None if that is not decided.
	decision plan.Decision
}

// explain explains the last event of a source, or the error of reading it.
func explain(policy plan.Policy, w *workload.Workload, source events.Source, stored events.Stored, err error) (explanation, error) {
	e := explanation{read: "by name only", asked: "-", changed: "-", rolled: "-"}
	if ref := w.Reference(source); ref != nil {
		e.read = "all keys"
		if ref.Keys != nil {
			e.read = workload.JoinKeys(ref.Keys)
		}
	}
	if last, ok := w.Rolled[source.String()]; ok && last.Version != workload.NoVersion {
		e.rolled = "resourceVersion " + last.Version
	}
	if errors.Is(err, events.ErrNotFound) && policy.Delete && w.Rolled[source.String()].OwesDeletion() {
		e.decision = plan.Decision{Source: source, Reason: plan.Deleted} // The stream has forgotten it meanwhile.
		e.now = plan.Roll.String() + ": " + plan.Deleted.Sentence()
		return e, nil
	}
	if errors.Is(err, events.ErrNotFound) {
		e.now = "skip: " + plan.Unknown.Sentence()
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	change, err := stored.Change()
	if err != nil {
		e.now = fmt.Sprintf("skip: its last event cannot be read: %v", err)
		return e, nil
	}
	e.decide(policy.Decide(w, change, plan.Past{}), change)
	return e, nil
}

// decide adds what would happen now.
func (e *explanation) decide(decision plan.Decision, change events.Change) {
	e.decision, e.changed = decision, "never"
	if change.ChangedAt != "" {
		e.changed = "resourceVersion " + change.ChangedAt
	}
	by := decision.Want.Annotation
	if decision.Want.Item != "" {
		by += ": " + decision.Want.Item
	}
	e.asked = cmp.Or(by, "-")
	e.now = decision.Reason.Action().String() + ": " + decision.Reason.Sentence()
	if decision.Hold != "" {
		e.now += ": " + decision.Hold
	}
}
