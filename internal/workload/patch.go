package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// Write is the content of one patch of a workload.
type Write struct {
	// rolled has the new entries of the workload's record, by source.
	Rolled map[string]RolledFor
	// rolls means that the patch replaces the pods. Otherwise it only records.
	Rolls bool
	// cause and traceparent are those of the mark, for a patch that rolls.
	Cause, Traceparent string
}

// Patch is a patch of one workload.
type Patch struct {
	Type types.PatchType
	Body []byte
	// Revision is the pod template's new revision. Empty if the patch only records.
	Revision string
}

// Patch returns the patch. It is deterministic: any actuator makes the same bytes of the same state, and the API server changes
// nothing if it is sent again.
func (k Kind) Patch(w *Workload, write Write) (Patch, error) {
	rolled := w.relevant()
	maps.Copy(rolled, write.Rolled)
	record, err := formatRolled(rolled)
	if err != nil {
		return Patch{}, err
	}
	object := map[string]any{"metadata": map[string]any{
		// The UID is a precondition, in case the workload was deleted and created again meanwhile.
		"uid":         w.ID.UID,
		"annotations": map[string]any{annotationRolled: record},
	}}
	p := Patch{Type: types.MergePatchType}
	if write.Rolls {
		sum := sha256.Sum256([]byte(record))
		p.Revision = hex.EncodeToString(sum[:8])
		object["spec"] = k.template(k.strategy.change(w, mark{revision: p.Revision, cause: write.Cause, traceparent: write.Traceparent}))
	}
	if p.Body, err = json.Marshal(object); err != nil {
		return Patch{}, fmt.Errorf("writing the patch of %s: %w", w.ID, err)
	}
	return p, nil
}

// relevant returns the workload's record without sources that no longer concern it.
func (w *Workload) relevant() map[string]RolledFor {
	rolled := maps.Clone(w.Rolled)
	if rolled == nil {
		rolled = make(map[string]RolledFor)
	}
	maps.DeleteFunc(rolled, func(text string, _ RolledFor) bool {
		source, err := events.ParseSource(text)
		if err != nil {
			return true
		}
		return !w.concerns(SourceNamed(source.Kind, w.ID.Namespace, source.Name))
	})
	return rolled
}
