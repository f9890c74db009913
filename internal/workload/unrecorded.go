package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// object is a pointer to an object of the API.
type object[T any] interface {
	*T
	runtime.Object
}

// patches patches the objects of one kind in one namespace.
type patches[T any, Object object[T]] struct {
	client interface {
		Get(ctx context.Context, name string, options metav1.GetOptions) (Object, error)
		Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresource ...string) (Object, error)
	}
	// unrecorded is Clients.Unrecorded.
	unrecorded bool
}

// send sends a patch, which has no effect if dryRun is metav1.DryRunAll. If unrecorded is set and permission is missing, it returns the object
// that the patch would have made, and an error that wraps ErrUnrecorded.
func (s patches[T, Object]) send(ctx context.Context, name string, p Patch, dryRun ...string) (Object, error) {
	obj, refused := s.client.Patch(ctx, name, p.Type, p.Body, metav1.PatchOptions{FieldManager: FieldManager, DryRun: dryRun})
	if !s.unrecorded || !kube.IsMissingRight(refused, "patch") {
		return obj, refused
	}
	obj, err := s.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading what may not be patched: %w", err)
	}
	after := Object(new(T))
	if err := p.apply(obj, after); err != nil {
		return nil, err
	}
	return after, fmt.Errorf("%w: %w", ErrUnrecorded, refused)
}

// apply applies the patch to obj as the API server would, and writes the result into after, which must be empty.
func (p Patch) apply(obj, after runtime.Object) error {
	before, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encoding what may not be patched: %w", err)
	}
	operations, err := jsonpatch.DecodePatch(p.Body)
	if err != nil {
		return fmt.Errorf("decoding a patch: %w", err)
	}
	made, err := operations.Apply(before)
	if err != nil {
		return kube.NotApplied()
	}
	if err := json.Unmarshal(made, after); err != nil {
		return fmt.Errorf("decoding what may not be patched: %w", err)
	}
	about, err := meta.Accessor(after)
	if err != nil {
		return fmt.Errorf("decoding what may not be patched: %w", err)
	}
	about.SetManagedFields(nil) // They say nothing of what the patch would have written.
	return nil
}

// kept remembers the last patch that could not be written on the workload.
type kept struct {
	rolled   map[string]RolledFor
	revision string
	last     Last
	// own is the revision on the workload itself.
	own string
	// rolledNow is what the patch records of AnnotationRollNow.
	rolledNow string
	// rolledAt is when the workload was rolled.
	rolledAt time.Time
	// rolls is the count with this roll.
	rolls rolls
	// instead is the record on the workload meanwhile. Once the actuator writes another one, that one counts, and this is dropped.
	instead string
}

// Keeping returns the workload with what a patch would have written on it. Later states keep that. What an earlier such patch would have
// written and this one would not is kept, too: it is not on the object that this patch was made for.
func (w *Workload) Keeping(patched *Workload) *Workload {
	k := kept{
		rolled: patched.Rolled, revision: patched.Revision, last: patched.Last,
		rolledNow: cmp.Or(patched.now.done, w.now.done), rolledAt: w.interval.rolled, rolls: w.breaker.rolls,
	}
	if w.kept != nil && patched.Revision == w.kept.own {
		k.revision, k.last = w.Revision, w.Last // The patch rolls nothing.
	}
	if patched.interval.rolled.After(k.rolledAt) {
		k.rolledAt = patched.interval.rolled
	}
	if patched.breaker.rolls.isLater(k.rolls) {
		k.rolls = patched.breaker.rolls
	}
	return w.with(k)
}

// KeepingStart returns the workload with the changes for which a Job of it was started, according to its last outcome. It returns false if the
// workload starts no Jobs, if its own record already has these changes, or if the outcome has none.
func (w *Workload) KeepingStart(last events.Outcome) (*Workload, bool) {
	started := last.Verb == events.VerbStarted || last.Verb == events.VerbCompleted
	if !w.starts || !started || last.Workload.UID != w.ID.UID || last.Revision == w.Revision {
		return nil, false
	}
	return w.keepingLater(kept{rolled: ChangesOf(last), revision: last.Revision, rolledAt: last.StartedAt})
}

// NeedsStarts reports whether Jobs of the workload may be the only ones to say what they were started for.
func (w *Workload) NeedsStarts() bool {
	return w.starts && !w.OptIn.Empty() && (!w.ours || w.stored.text(annotationRolled) == "")
}

// KeepingStarts returns the workload with the changes that its Jobs were started for, according to the Jobs. It returns false if the workload
// starts no Jobs, or if its record already has these changes.
func (w *Workload) KeepingStarts(s Starts) (*Workload, bool) {
	if !w.NeedsStarts() {
		return nil, false
	}
	return w.keepingLater(kept{rolled: s.rolled, revision: s.revision, rolledNow: s.rolledNow, rolledAt: s.created.Time})
}

// keepingLater returns the workload with what is known of a roll. It returns false if the record already has these changes, or later ones. What the
// workload is still to be rolled for may be later.
func (w *Workload) keepingLater(k kept) (*Workload, bool) {
	rolled, later := make(map[string]RolledFor, len(w.Rolled)+len(k.rolled)), false
	maps.Copy(rolled, w.Rolled)
	for source, change := range k.rolled {
		if last, recorded := rolled[source]; !recorded || events.Newer(change.Version, last.Version) && !last.IsOwed() {
			rolled[source], later = change, true
		}
	}
	if !later {
		return nil, false
	}
	k.rolled, k.last = rolled, Last{Revision: k.revision, At: toSecond(k.rolledAt), Was: wasFine}
	return w.with(k), true
}

func (w *Workload) with(k kept) *Workload {
	k.instead, k.own = w.stored.text(annotationRolled), w.Revision
	if w.kept != nil {
		k.own = w.kept.own
	}
	keeping := *w
	keeping.kept, keeping.Rolled, keeping.Revision, keeping.Last = &k, k.rolled, k.revision, k.last
	keeping.now.done = cmp.Or(k.rolledNow, w.now.done)
	if k.rolledAt.After(w.interval.rolled) {
		keeping.interval.rolled = k.rolledAt
	}
	if k.rolls.isLater(w.breaker.rolls) {
		keeping.breaker.rolls = k.rolls
	}
	return &keeping
}

// recallKept takes over what an earlier state keeps, unless the actuator has written another record since.
func (w *Workload) recallKept(earlier *Workload) {
	if k := earlier.kept; k != nil && w.kept == nil && (!w.ours || k.instead == w.stored.text(annotationRolled)) {
		*w = *w.with(*k)
	}
}

// startsPage is the page size of lists of Jobs.
const startsPage = 500

// Starts is what the Jobs of one CronJob were started for, according to those that still exist. Jobs say so if nothing may be written on the
// CronJob.
type Starts struct {
	rolled map[string]RolledFor
	// revision is that of the newest Job, and created is when that was created.
	revision string
	created  metav1.Time
	// rolledNow is the recorded value of AnnotationRollNow on the newest Job that has one, and asked is when that Job was created.
	rolledNow string
	asked     metav1.Time
}

// ReadStarts returns what the Jobs in a namespace were started for, by the UID of their CronJob. An empty namespace means all namespaces.
func ReadStarts(ctx context.Context, c Clients, namespace string) (map[string]Starts, error) {
	found, options := make(map[string]Starts), metav1.ListOptions{Limit: startsPage}
	for {
		list, err := c.Typed.BatchV1().Jobs(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing jobs: %w", err)
		}
		for i := range list.Items {
			addStart(found, &list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// addStart adds what a Job was started for.
func addStart(found map[string]Starts, job *batchv1.Job) {
	record := parseRolled(job.Annotations[annotationRolled])
	owner := metav1.GetControllerOfNoCopy(job)
	if len(record) == 0 || owner == nil || owner.Kind != cronJobs.Title {
		return
	}
	starts, earlier := found[string(owner.UID)]
	if !earlier {
		starts.rolled = make(map[string]RolledFor, len(record))
	}
	for source, change := range record {
		if last, known := starts.rolled[source]; !known || events.Newer(change.Version, last.Version) {
			starts.rolled[source] = change
		}
	}
	if !job.CreationTimestamp.Before(&starts.created) {
		starts.revision, starts.created = job.Annotations[annotationRevision], job.CreationTimestamp
	}
	if done := job.Annotations[annotationRolledNow]; done != "" && !job.CreationTimestamp.Before(&starts.asked) {
		starts.rolledNow, starts.asked = done, job.CreationTimestamp
	}
	found[string(owner.UID)] = starts
}
