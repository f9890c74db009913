package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// Write is what one patch writes on a workload.
type Write struct {
	// Rolled is what is new in the workload's record, by source.
	Rolled map[string]RolledFor
	// Rolls has the pods replaced. False: the patch only records.
	Rolls bool
	// Cause says for people what a roll is for, and Traceparent is the trace context of the change, empty if it has none.
	Cause, Traceparent string
}

// Patch returns the one patch that writes all of it. It is deterministic: made again of the same state, by this actuator or another, it is
// the same to the byte, and the API server then changes nothing.
func (k Kind) Patch(w *Workload, write Write) (Patch, error) {
	rolled := w.relevantRecord()
	maps.Copy(rolled, write.Rolled)
	record, err := formatRolled(rolled)
	if err != nil {
		return Patch{}, err
	}
	object := map[string]any{"metadata": map[string]any{
		// The UID is a precondition: a workload of the same name that was created in the meantime is another one.
		"uid":         w.ID.UID,
		"annotations": map[string]any{annotationRolled: record},
	}}
	p := Patch{Type: types.MergePatchType}
	if write.Rolls {
		sum := sha256.Sum256([]byte(record))
		p.Revision = hex.EncodeToString(sum[:8])
		change := k.strategy.change(w, mark{revision: p.Revision, cause: write.Cause, traceparent: write.Traceparent})
		object["spec"] = k.template(change)
	}
	if p.Body, err = json.Marshal(object); err != nil {
		return Patch{}, fmt.Errorf("encoding the patch of %s: %w", w.ID, err)
	}
	return p, nil
}
