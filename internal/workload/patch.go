package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// Write is what one patch writes on a workload.
type Write struct {
	// Rolled is what is new in the workload's record, by source.
	Rolled map[string]RolledFor
	// Rolls has the pods replaced. False: the patch only records.
	Rolls bool
	// InPlace says that the pods have reloaded instead: as with a roll, the workload may not have been put on hold meanwhile.
	InPlace bool
	// Changes are those that a roll is for, the newest last.
	Changes []Change
	// Reverted is what is new in the count of rolls that were taken back, by source.
	Reverted map[string]Reverted
	// Version is the resourceVersion that the workload must still have. Empty: any.
	Version string
	// PausedAt begins a pause, as of that time. Zero: it does not.
	PausedAt time.Time
	// RolledAt is when a roll was decided, which is recorded if an interval applies, and for which it is counted.
	RolledAt time.Time
	// Uncounted says that the roll is not counted on the workload.
	Uncounted bool
	// Before is the state before a roll that was none: what that has recorded of AnnotationRollNow and of its time is as it was then. Nil: it stays.
	Before *Workload
	// EndsPause takes away what says that a pause has begun.
	EndsPause bool
	// Cause says for people what a roll is for, and Traceparent is the trace context of the change, empty if it has none.
	Cause, Traceparent string
}

// acts reports whether the patch is for changes that the pods get with it, by being replaced or told.
func (write Write) acts() bool { return write.Rolls || write.InPlace }

// Patch returns the one patch that writes all of it. It is deterministic: made again of the same state, by this actuator or another, it is
// the same to the byte. The API server applies it only to the workload with the record that it was made of: see
// docs/adr/0015-a-patch-tests-the-record.md.
func (k Kind) Patch(w *Workload, write Write) (Patch, error) {
	rolled := w.newRecord(write.Rolled)
	record, err := formatRolled(rolled)
	if err != nil {
		return Patch{}, err
	}
	reverted, err := w.revertedAfter(write)
	if err != nil {
		return Patch{}, err
	}
	// A workload of the same name that was created in the meantime is another one.
	operations := []operation{test("/metadata/uid", w.ID.UID)}
	if !w.stored.annotated {
		operations = append(operations, begin("/metadata/annotations")...)
	}
	if write.Version != "" {
		operations = append(operations, test("/metadata/resourceVersion", write.Version))
	}
	operations = append(operations, w.stored.write(annotationRolled, record)...)
	operations = append(operations, w.stored.write(annotationReverted, reverted)...)
	if pausedAt := w.pausedAt(write); pausedAt != w.stored.text(w.pausedAtKey) {
		operations = append(operations, w.stored.write(w.pausedAtKey, pausedAt)...)
	}
	operations = append(operations, w.mayRoll(write)...)
	operations = append(operations, w.rolledAt(write)...)
	operations = append(operations, w.rollsAfter(write)...)
	operations = append(operations, w.asBefore(write.Before)...)
	p := Patch{Type: types.JSONPatchType}
	if write.Rolls {
		p.Revision, p.subject = revisionOf(record, reverted), write.subject()
		m := mark{revision: p.Revision, cause: write.Cause, traceparent: write.Traceparent}
		for _, change := range write.Changes {
			// They are in the order of resourceVersions, which secrets in stores do not have.
			if at := change.readFrom(); at.After(m.readFrom) {
				m.readFrom = at
			}
		}
		if m.others, err = w.marks(k.template, write, rolled); err != nil {
			return Patch{}, err
		}
		operations = append(operations, k.strategy.change(w, k.template, m)...)
	}
	if p.Body, err = json.Marshal(operations); err != nil {
		return Patch{}, fmt.Errorf("encoding the patch of %s: %w", w.ID, err)
	}
	return p, nil
}

// subject returns a digest of the changes that a roll is for, whatever the record says of others. The resourceVersion of a Secret or a ConfigMap
// identifies its content, so their fingerprints do not count: another replica may have another key for them.
func (write Write) subject() string {
	var about []string
	for _, change := range write.Changes {
		rolled := write.Rolled[change.Source.String()]
		if kind := change.Source.Kind; (kind == events.KindSecret || kind == events.KindConfigMap) && !rolled.IsDeleted() {
			rolled.Fingerprint = ""
		}
		about = append(about, change.Source.String()+"="+rolled.String())
	}
	slices.Sort(about)
	return revisionOf(strings.Join(about, "\n"), "")
}

// revisionOf returns the revision of a roll that writes a record. It differs from the one before when a roll is repeated that was taken back.
func revisionOf(record, reverted string) string {
	return shortHash(record+reverted, 8)
}

// AtRecord reports whether the pod template is the one that the last roll wrote.
func (w *Workload) AtRecord() bool { return w.Revision == w.recordRevision }
