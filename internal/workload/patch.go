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

// Write is what one patch writes on a workload.
type Write struct {
	// rolled is what is new in the workload's record, by source.
	Rolled map[string]RolledFor
	// rolls has the pods replaced. Else the patch only records.
	Rolls bool
	// cause and traceparent are those of mark, for a patch that rolls.
	Cause, Traceparent string
}

// Patch is a patch of one workload, ready to be sent.
type Patch struct {
	Type types.PatchType
	Body []byte
	// Revision is the one that the patch gives the pod template. Empty where it only records.
	Revision string
}

// Patch returns the one patch that writes all of it. It is deterministic: made again of the same state, by this actuator or
// another, it is the same to the byte, and the API server then changes nothing.
func (k Kind) Patch(w *Workload, write Write) (Patch, error) {
	rolled := w.relevant()
	maps.Copy(rolled, write.Rolled)
	record, err := formatRolled(rolled)
	if err != nil {
		return Patch{}, err
	}
	object := map[string]any{"metadata": map[string]any{
		// The UID is a precondition: a workload of the same name that was made in the meantime is another.
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

// relevant is the workload's record without the sources that no longer concern it.
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
