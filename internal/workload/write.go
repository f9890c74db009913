package workload

import (
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// These are the errors of a patch.
var (
	// ErrUnrecorded is returned if the workload could not be patched, because permission is missing or because the API server refused the patch after
	// a Job was started. Everything else was done. The workload that is returned with it is as the patch would have made it.
	ErrUnrecorded = errors.New("not recorded on the workload")
	// ErrStripped is returned if the API server accepted a patch but dropped the part that replaces pods.
	ErrStripped = errors.New("the response lacks what the patch wrote")
	// ErrUnstarted is returned with Clients.Unrecorded if there is no permission to create Jobs, which such installations need not grant.
	ErrUnstarted = errors.New("no job is started")
	// ErrNameTaken is returned if an unrelated Job already has the name of a Job that is to be created.
	ErrNameTaken = errors.New("the name is taken by another job")
)

// Write describes the content of a patch.
type Write struct {
	// Rolled contains the new entries of the workload's record, by source.
	Rolled map[string]RolledFor
	// Rolls replaces the pods. If false, the patch only records.
	Rolls bool
	// InPlace says that the pods have reloaded instead. Unlike a roll, this is recorded even if the workload was put on hold meanwhile.
	InPlace bool
	// Changes are the changes that a roll is for, the newest last.
	Changes []Change
	// Reverted contains the new counts of reverted rolls, by source.
	Reverted map[string]RolledFor
	// Version is the resourceVersion that the workload must still have. Empty means any.
	Version string
	// PausedAt is when a pause begins. Zero means that none begins.
	PausedAt time.Time
	// RolledAt is the time of the decision to roll. It is recorded if an interval applies, and the roll is counted at this time.
	RolledAt time.Time
	// Before is the state before a roll without effect, whose AnnotationRollNow, time, count and mark are restored. Nil restores nothing.
	Before *Workload
	// EndsPause removes the time at which a pause began.
	EndsPause bool
	// Last is the mark to write: of a roll, to which its revision is added, or with the result of the last roll. Nil keeps the mark.
	Last *Last
	// Cause is the reason for a roll, for users, and Traceparent is the trace context of the change, empty if it has none.
	Cause, Traceparent string
}

// acts reports whether the pods get the changes with this patch, by being replaced or by having reloaded.
func (write Write) acts() bool { return write.Rolls || write.InPlace }

// subject returns a digest of the changes of a roll. It ignores the fingerprints of Secrets and ConfigMaps, because their resourceVersion identifies
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

// Change is a change that a workload is rolled for.
type Change struct {
	Source events.Source
	// At is when it was seen, by the clock of the program that saw it.
	At time.Time
	// Written is when it was written, by the API server's clock, in whole seconds. It is zero if unknown.
	Written time.Time
	// Since is when the source first changed after the last roll. Keys are the keys that have changed since then, none if it has no keys.
	Since time.Time
	Keys  []string
}

// readFrom returns the first whole second from which pods start with the change.
func (c Change) readFrom() time.Time {
	if c.Written.IsZero() {
		return roundedUp(c.At)
	}
	return c.Written.Truncate(time.Second).Add(restartDelay)
}

// restartDelay is the delay from a write to the restart of pods. A pod that was created in the same second may be older than the write.
const restartDelay = time.Second

// Patch is a patch of one workload, ready to be sent.
type Patch struct {
	// Body is a JSON patch.
	Body []byte
	// Revision is the revision that the patch writes on the pod template. If empty, the patch only records.
	Revision string

	// subject is a digest of the changes of the roll.
	subject string
	// restores is the UID of the workload passed to Kind.Restore, and abandons its argument. If restores is empty, this is an ordinary patch.
	restores types.UID
	abandons bool
}

// revisionOf returns the revision of a roll that writes a record. A repeated roll after a revert has a new revision.
func revisionOf(record, reverted string) string { return shortHash(record+reverted, 8) }

// roundedUp returns a time rounded up to the second, so that its readers end no period too early.
func roundedUp(at time.Time) time.Time {
	return at.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}
