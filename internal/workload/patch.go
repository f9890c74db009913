package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// The errors of a patch.
var (
	// ErrUnrecorded is returned if the workload could not be patched, because permission is missing, or because the API server refused the patch
	// after a Job was started. Everything else was done. The workload that comes with it is as the patch would have made it.
	ErrUnrecorded = errors.New("not recorded on the workload")
	// ErrStripped is returned if the API server accepted a patch, but dropped the part that causes pods to be replaced.
	ErrStripped = errors.New("the response lacks what the patch wrote")
	// ErrUnstarted is returned with Clients.Unrecorded if there is no permission to create Jobs, which such installations need not grant.
	ErrUnstarted = errors.New("no job is started")
	// ErrNameTaken is returned if an unrelated Job already has the name of a Job that is to be created.
	ErrNameTaken = errors.New("the name is taken by another job")
)

// Write describes what one patch writes on a workload.
type Write struct {
	// Rolled has the new entries of the workload's record, by source.
	Rolled map[string]RolledFor
	// Rolls causes the pods to be replaced. If false, the patch only records.
	Rolls bool
	// InPlace says that the pods have reloaded instead. Unlike a roll, it is recorded also if the workload has been put on hold meanwhile.
	InPlace bool
	// Changes are the changes that a roll is for, the newest last.
	Changes []Change
	// Reverted has the new counts of rolls that were undone, by source.
	Reverted map[string]RolledFor
	// Version is the resourceVersion that the workload must still have. Empty means any.
	Version string
	// PausedAt is when a pause begins. Zero means that none does.
	PausedAt time.Time
	// RolledAt is when a roll was decided. It is recorded if an interval applies, and the roll is counted at this time.
	RolledAt time.Time
	// Before is the state before a roll without effect, whose AnnotationRollNow, time, count and mark are restored. Nil means that they stay.
	Before *Workload
	// EndsPause removes the time at which a pause began.
	EndsPause bool
	// Last is the mark that is written: of a roll, to which its revision is added, or with what has become of one. Nil means that it stays.
	Last *Last
	// Cause says for people what a roll is for, and Traceparent is the trace context of the change, empty if it has none.
	Cause, Traceparent string
}

// acts reports whether the pods get the changes with this patch, by being replaced or by having reloaded.
func (write Write) acts() bool { return write.Rolls || write.InPlace }

// Patch returns the one patch that writes all of write. It is deterministic: made again from the same state, it is identical to the byte. The API
// server applies it only if the record is still the one that it was made from: see docs/adr/0015-a-patch-tests-the-record.md.
func (k Kind) Patch(w *Workload, write Write) (Patch, error) {
	rolled := w.newRecord(write.Rolled)
	record := formatRolled(rolled)
	if !w.ours && record == w.stored.text(annotationRolled) {
		record += " " // The API server leaves a value to who has written it.
	}
	reverted := w.revertedAfter(write)
	// A workload of the same name that was created in the meantime is a different one.
	operations := []operation{test("/metadata/uid", w.ID.UID)}
	if !w.stored.annotated {
		operations = append(operations, begin(ownAnnotations)...)
	}
	if write.Version != "" {
		operations = append(operations, test("/metadata/resourceVersion", write.Version))
	}
	operations = slices.Concat(operations, w.stored.write(annotationRolled, record), w.stored.write(annotationReverted, reverted),
		w.pauseAfter(write), w.mayRoll(write), w.timesAfter(write), w.asBefore(write.Before))
	p := Patch{Type: types.JSONPatchType}
	if write.Rolls {
		p.Revision, p.subject = revisionOf(record, reverted), write.subject()
		m := mark{revision: p.Revision, cause: write.Cause, traceparent: write.Traceparent}
		for _, change := range write.Changes {
			// They are in the order of resourceVersions, which secrets in stores do not have.
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

// subject returns a digest of the changes that a roll is for. It ignores the fingerprints of Secrets and ConfigMaps: their resourceVersion identifies
// the content, and another replica may use another fingerprint key.
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

// revisionOf returns the revision of a roll that writes a record. When a roll that was undone is repeated, the revision is a new one.
func revisionOf(record, reverted string) string { return shortHash(record+reverted, 8) }

// readFrom returns the first whole second from which pods start with the change.
func (c Change) readFrom() time.Time {
	if c.Written.IsZero() {
		return roundedUp(c.At)
	}
	return c.Written.Truncate(time.Second).Add(restartDelay)
}

// Change is a change that a workload is rolled for.
type Change struct {
	Source events.Source
	// At is when it was seen, by the clock of the program that saw it.
	At time.Time
	// Written is when it was written, by the API server's clock, to the second. It is zero if not known.
	Written time.Time
}

// Patch is a patch of one workload, ready to be sent.
type Patch struct {
	Type types.PatchType
	Body []byte
	// Revision is what the patch writes on the pod template. If empty, the patch only records.
	Revision string

	// subject is a digest of the changes that the patch rolls for.
	subject string
	// restores is the UID of the workload passed to Kind.Restore, and abandons its argument. If restores is empty, this is an ordinary patch.
	restores types.UID
	abandons bool
}

// asBefore returns the operations that undo what was recorded for a roll that had no effect, none if before is nil.
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

// shortHash returns the first bytes of the SHA-256 of a text, in hexadecimal, for names that everyone derives in the same way.
func shortHash(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}
