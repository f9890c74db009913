package actuate

import (
	"context"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// roll is one patch of one workload: what it is for and what it will make.
type roll struct {
	kind     workload.Kind
	workload *workload.Workload
	// decisions are those that roll or record, in the order of their sources.
	decisions []plan.Decision
	// causes are the changes of the decisions that roll, the newest last.
	causes []*claim
	// cause says for people what it is for.
	cause string
	// rolls is false where the patch only records.
	rolls bool
	patch workload.Patch
	// pending is what the workload had pending: its claims are released when the patch is done.
	pending *pending
	// attempts counts the patches that were tried before this one in vain.
	attempts int
	// ctx carries the span of the decision, which has ended. What comes of the decision is below it.
	ctx context.Context
}

// newRoll makes the one patch for a workload.
func newRoll(k workload.Kind, w *workload.Workload, decisions []plan.Decision, claims map[events.Source]*claim) (*roll, error) {
	slices.SortFunc(decisions, func(a, b plan.Decision) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	r := &roll{kind: k, workload: w, decisions: decisions, cause: describeCause(decisions, claims)}
	rolled := make(map[string]workload.RolledFor, len(decisions))
	for _, decision := range decisions {
		rolled[decision.Source.String()] = decision.Record
		if decision.Reason.Action() == plan.Roll {
			r.rolls = true
			r.causes = append(r.causes, claims[decision.Source])
		}
	}
	slices.SortStableFunc(r.causes, func(a, b *claim) int {
		switch {
		case workload.Newer(a.change.ResourceVersion, b.change.ResourceVersion):
			return 1
		case workload.Newer(b.change.ResourceVersion, a.change.ResourceVersion):
			return -1
		}
		return strings.Compare(a.change.Source.String(), b.change.Source.String())
	})
	written := workload.Write{Rolled: rolled, Rolls: r.rolls, Cause: r.cause}
	if r.rolls {
		// Not the context of this span, which would be another at each try, but that of the change.
		written.Traceparent = r.causes[len(r.causes)-1].change.Trace.Parent
	}
	var err error
	r.patch, err = k.Patch(w, written)
	return r, err
}

// describeCause says what a roll is for, and what was behind it: "secret/db (password) by externalsecret/db, configmap/app".
func describeCause(decisions []plan.Decision, claims map[events.Source]*claim) string {
	var causes []string
	for _, decision := range decisions {
		if decision.Reason.Action() != plan.Roll {
			continue
		}
		text := decision.Source.String()
		if len(decision.Keys) > 0 {
			text += " (" + workload.JoinKeys(decision.Keys) + ")"
		}
		if behind := claims[decision.Source].change.Cause; behind != nil {
			text += " by " + behind.String()
		}
		causes = append(causes, text)
	}
	return strings.Join(causes, ", ")
}
