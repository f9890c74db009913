package actuate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// roll is one patch of one workload: what it is for and what it will make.
type roll struct {
	kind     kind
	workload *workload
	// decisions are those that roll or record, in the order of their sources.
	decisions []Decision
	// causes are the changes of the decisions that roll, the newest last.
	causes []*claim
	// cause says for people what it is for.
	cause string
	// rolls is false where the patch only records.
	rolls    bool
	revision string
	body     []byte
	// pending is what the workload had pending: its claims are released when the patch is done.
	pending *pending
	// attempts counts the patches that were tried before this one in vain.
	attempts int
	// ctx carries the span of the decision, which has ended. What comes of the decision is below it.
	ctx context.Context
}

// newRoll makes the one merge patch for a workload. It is deterministic: made again of the same claims, by this actuator or
// another, it is the same to the byte, and the API server then changes nothing.
func newRoll(k kind, w *workload, decisions []Decision, claims map[events.Source]*claim) (*roll, error) {
	slices.SortFunc(decisions, func(a, b Decision) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	r := &roll{kind: k, workload: w, decisions: decisions, cause: describeCause(decisions, claims)}
	rolled := relevant(w)
	for _, decision := range decisions {
		rolled[decision.Source.String()] = decision.Record
		if decision.Reason.Action() == Roll {
			r.rolls = true
			r.causes = append(r.causes, claims[decision.Source])
		}
	}
	slices.SortStableFunc(r.causes, func(a, b *claim) int {
		switch {
		case newer(a.change.ResourceVersion, b.change.ResourceVersion):
			return 1
		case newer(b.change.ResourceVersion, a.change.ResourceVersion):
			return -1
		}
		return strings.Compare(a.change.Source.String(), b.change.Source.String())
	})
	record, err := formatRolled(rolled)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{"metadata": map[string]any{
		// The UID is a precondition: a workload of the same name that was made in the meantime is another.
		"uid":         w.id.UID,
		"annotations": map[string]any{annotationRolled: record},
	}}
	if r.rolls {
		sum := sha256.Sum256([]byte(record))
		r.revision = hex.EncodeToString(sum[:8])
		template := map[string]any{annotationRevision: r.revision, annotationCause: r.cause}
		// Not the context of this span, which would be another at each try, but that of the change.
		if parent := r.causes[len(r.causes)-1].change.Trace.Parent; parent != "" {
			template[annotationTraceparent] = parent
		} else {
			template[annotationTraceparent] = nil
		}
		patch["spec"] = k.template(map[string]any{"metadata": map[string]any{"annotations": template}})
	}
	if r.body, err = json.Marshal(patch); err != nil {
		return nil, fmt.Errorf("writing the patch of %s: %w", w.id, err)
	}
	return r, nil
}

// relevant is the workload's record without the sources that no longer concern it.
func relevant(w *workload) map[string]RolledFor {
	rolled := maps.Clone(w.rolled)
	if rolled == nil {
		rolled = make(map[string]RolledFor)
	}
	maps.DeleteFunc(rolled, func(text string, _ RolledFor) bool {
		source, err := events.ParseSource(text)
		if err != nil {
			return true
		}
		return !w.concerns(sourceNamed(source.Kind, w.id.Namespace, source.Name))
	})
	return rolled
}

// describeCause says what a roll is for, and what was behind it: "secret/db (password) by externalsecret/db, configmap/app".
func describeCause(decisions []Decision, claims map[events.Source]*claim) string {
	var causes []string
	for _, decision := range decisions {
		if decision.Reason.Action() != Roll {
			continue
		}
		text := decision.Source.String()
		if len(decision.Keys) > 0 {
			text += " (" + strings.Join(shorten(decision.Keys), ", ") + ")"
		}
		if behind := claims[decision.Source].change.Cause; behind != nil {
			text += " by " + behind.String()
		}
		causes = append(causes, text)
	}
	return strings.Join(causes, ", ")
}

// maxKeysSaid is how many keys a sentence names.
const maxKeysSaid = 5

func shorten(keys []string) []string {
	if len(keys) <= maxKeysSaid {
		return keys
	}
	return append(slices.Clone(keys[:maxKeysSaid]), fmt.Sprintf("%d more", len(keys)-maxKeysSaid))
}
