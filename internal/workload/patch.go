package workload

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Patch returns the single patch that carries out write. It is deterministic: the same state gives identical bytes. The API server applies it only if
// the record has not changed since: see docs/adr/0015-a-patch-tests-the-record.md.
func (k Kind) Patch(w *Workload, write Write) (Patch, error) {
	rolled := w.newRecord(write.Rolled)
	record := formatRolled(rolled)
	if !w.ours && record == w.stored.text(annotationRolled) {
		record += " " // The new value makes the actuator the field manager.
	}
	reverted := w.revertedAfter(write)
	// A new workload with the same name is a different one.
	operations := []operation{test("/metadata/uid", w.ID.UID)}
	if !w.stored.annotated {
		operations = append(operations, begin(ownAnnotations)...)
	}
	if write.Version != "" {
		operations = append(operations, test("/metadata/resourceVersion", write.Version))
	}
	operations = slices.Concat(operations, w.stored.write(annotationRolled, record), w.stored.write(annotationReverted, reverted),
		w.pauseAfter(write), w.mayRoll(write), w.timesAfter(write), w.asBefore(write.Before))
	var p Patch
	if write.Rolls {
		p.Revision, p.subject = revisionOf(record, reverted), write.subject()
		m := mark{revision: p.Revision, cause: write.Cause, traceparent: write.Traceparent}
		for _, change := range write.Changes {
			// Changes are ordered by resourceVersion, which secrets in stores do not have.
			m.readFrom = later(m.readFrom, change.readFrom())
		}
		m.others = w.marks(k.template, write, rolled)
		operations = append(operations, k.strategy.change(w, k.template, m)...)
	}
	var err error
	if p.Body, err = json.Marshal(append(operations, w.lastAfter(write, p.Revision)...)); err != nil {
		return Patch{}, fmt.Errorf("encoding the patch of %s: %w", w.ID, err)
	}
	return p, nil
}

// asBefore returns the operations that undo the record of a roll without effect, none if before is nil.
func (w *Workload) asBefore(before *Workload) []operation {
	if before == nil {
		return nil
	}
	var operations []operation
	for _, name := range []string{annotationRolledNow, annotationRolledAt, annotationRolls, annotationLast} {
		if text := before.stored.text(name); text != w.stored.text(name) {
			operations = append(operations, w.stored.write(name, text)...)
		}
	}
	return operations
}
