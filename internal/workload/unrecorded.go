package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// This file is about Clients.Unrecorded. Reloader's own Role allows creating Jobs, but not patching Jobs and CronJobs. So a patch is only computed,
// and its record is kept in memory, on the Jobs of a CronJob, and in the outcomes on the stream.

// send sends a patch, without effect if dryRun is metav1.DryRunAll. If unrecorded is set and permission is missing, it returns the object that the
// patch would have produced, and ErrUnrecorded.
func (o typedObjects[Object, List, T]) send(ctx context.Context, name string, p Patch, dryRun ...string) (Object, error) {
	obj, refused := o.client.Patch(ctx, name, types.JSONPatchType, p.Body, metav1.PatchOptions{FieldManager: FieldManager, DryRun: dryRun})
	if !o.unrecorded || !kube.IsMissingRight(refused, "patch") {
		return obj, refused
	}
	obj, err := o.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the object that may not be patched: %w", err)
	}
	after := Object(new(T))
	if err := p.apply(obj, after); err != nil {
		return nil, err
	}
	after.SetManagedFields(nil) // They do not cover the fields of the patch.
	return after, fmt.Errorf("%w: %w", ErrUnrecorded, refused)
}

// apply applies the patch to obj as the API server would, and writes the result into after, which must be empty.
func (p Patch) apply(obj, after runtime.Object) error {
	before, err := json.Marshal(obj)
	operations, invalid := jsonpatch.DecodePatch(p.Body)
	if err := errors.Join(err, invalid); err != nil {
		return fmt.Errorf("encoding the object that may not be patched: %w", err)
	}
	made, err := operations.Apply(before)
	if err != nil {
		return kube.NotApplied()
	}
	if err := json.Unmarshal(made, after); err != nil {
		return fmt.Errorf("decoding the object that may not be patched: %w", err)
	}
	return nil
}

// unwritten is the record of the last patch that could not be written on the workload.
type unwritten struct {
	record
	// own is the revision on the workload, and instead the record on it. If the actuator writes another record, this one is dropped.
	own, instead string
}

// IsUnwritten reports whether the record of the workload is, or may be, only in memory because it could not be written.
func (w *Workload) IsUnwritten() bool { return w.unwritten != nil }

// with returns the record with the AnnotationRollNow values, last roll and count of an earlier one, where those are later.
func (r record) with(earlier record) record {
	r.rolledNow = cmp.Or(r.rolledNow, earlier.rolledNow)
	r.rolledAt = later(r.rolledAt, earlier.rolledAt)
	if earlier.rolls.isLater(r.rolls) {
		r.rolls = earlier.rolls
	}
	return r
}

// Keeping returns the workload as the patch would have made it, or nil if another object has the name. Later states keep this, together with the
// results of earlier such patches, which are not on the object either.
func (w *Workload) Keeping(patched *Workload) *Workload {
	if w.ID.UID != patched.ID.UID {
		return nil
	}
	r := patched.record
	if w.unwritten != nil && r.Revision == w.unwritten.own {
		r.Revision, r.Last = w.Revision, w.Last // The patch rolls nothing.
	}
	return w.keep(r)
}

// KeepingStart returns the workload with the changes of a Job start from its last outcome. It returns nil if its record has them already, or if there
// are none.
func (w *Workload) KeepingStart(last events.Outcome) *Workload {
	started := last.Verb == events.VerbStarted || last.Verb == events.VerbCompleted
	if !w.starts || !started || last.Workload.UID != w.ID.UID || last.Revision == w.Revision {
		return nil
	}
	return w.keepLater(record{Rolled: ChangesOf(last), Revision: last.Revision, rolledAt: last.StartedAt})
}

// NeedsStarts reports whether only the workload's Jobs may tell which changes they were started for.
func (w *Workload) NeedsStarts() bool {
	return w.starts && !w.OptIn.Empty() && (!w.ours || w.stored.text(annotationRolled) == "")
}

// KeepingStarts returns the workload with the changes that its Jobs were started for, or nil if its record has them already.
func (w *Workload) KeepingStarts(s Starts) *Workload {
	if !w.NeedsStarts() {
		return nil
	}
	return w.keepLater(s.record)
}

// keepLater returns the workload with a roll's record, or nil if its record has these changes, or later ones, already. Changes that it still owes may
// be later.
func (w *Workload) keepLater(r record) *Workload {
	rolled, later := make(map[string]RolledFor, len(w.Rolled)+len(r.Rolled)), false
	for source, last := range w.Rolled {
		if w.IsUnwritten() || !isForgedMark(source, last, w.Version) {
			rolled[source] = last
		}
	}
	for source, change := range r.Rolled {
		if last, recorded := rolled[source]; !recorded || events.Newer(change.Version, last.Version) && !last.IsOwed() {
			rolled[source], later = change, true
		}
	}
	if !later {
		return nil
	}
	r.Rolled, r.Last = rolled, Last{Revision: r.Revision, At: toSecond(r.rolledAt), Was: wasFine}
	return w.keep(r)
}

func (w *Workload) keep(r record) *Workload {
	k := unwritten{r.with(w.record), w.Revision, w.stored.text(annotationRolled)}
	if w.unwritten != nil {
		k.own = w.unwritten.own
	}
	keeping := *w
	keeping.unwritten, keeping.record = &k, k.record
	return &keeping
}

// recallKept keeps the unwritten record of an earlier state, unless the actuator has written another record since.
func (w *Workload) recallKept(earlier *Workload) {
	if k := earlier.unwritten; k != nil && w.unwritten == nil && (!w.ours || k.instead == w.stored.text(annotationRolled)) {
		*w = *w.keep(k.record)
	}
}

// Starts are the changes that the existing Jobs of one CronJob were started for. The revision and the time are those of the newest Job.
type Starts struct {
	record
	// asked is the creation time of the newest Job that has recorded AnnotationRollNow.
	asked metav1.Time
}

// ReadStarts returns the changes that the Jobs in a namespace were started for, by the UID of their CronJob. An empty namespace means all namespaces.
func ReadStarts(ctx context.Context, c Clients, namespace string) (map[string]Starts, error) {
	found := make(map[string]Starts)
	err := pager.New(jobs.Objects(c, namespace).List).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if job, ok := object.(*batchv1.Job); ok {
			addStart(found, job)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	return found, nil
}

// addStart adds the changes that a Job was started for.
func addStart(found map[string]Starts, job *batchv1.Job) {
	rolled := parseRolled(job.Annotations[annotationRolled])
	owner := metav1.GetControllerOfNoCopy(job)
	if len(rolled) == 0 || owner == nil || owner.Kind != cronJobs.Title {
		return
	}
	starts := found[string(owner.UID)]
	if starts.Rolled == nil {
		starts.Rolled = make(map[string]RolledFor, len(rolled))
	}
	for source, change := range rolled {
		if isForgedMark(source, change, job.ResourceVersion) {
			continue
		}
		if last, known := starts.Rolled[source]; !known || events.Newer(change.Version, last.Version) {
			starts.Rolled[source] = change
		}
	}
	if created := job.CreationTimestamp; !created.Time.Before(starts.rolledAt) {
		starts.Revision, starts.rolledAt = job.Annotations[annotationRevision], created.Time
	}
	if done := job.Annotations[annotationRolledNow]; done != "" && !job.CreationTimestamp.Before(&starts.asked) {
		starts.rolledNow, starts.asked = done, job.CreationTimestamp
	}
	found[string(owner.UID)] = starts
}
