package actuate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// task is a single patch of a workload. It does not change after its start, because another goroutine sends it; only the loop may read pending.
type task struct {
	kind     workload.Kind
	workload *workload.Workload
	// decisions are those that roll or record, in the order of their sources.
	decisions []plan.Decision
	// causes are the changes of the decisions that roll, the newest last.
	causes []*pendingChange
	cause  string
	// content is the new part of the record, by source.
	content map[string]workload.RolledFor
	// rolls is false for a patch that only records, also one after a reload in place (see way).
	rolls bool
	way   way
	// reloaded is how many pods have answered a request to reload this content in an earlier attempt. They are not asked again.
	reloaded int
	// forDeletion says that one of the sources was deleted, perhaps with the whole namespace.
	forDeletion bool
	patch       workload.Patch
	// finish is called with the result of a patch without pending changes. If nil, the dispatcher handles the result.
	finish func(context.Context, patchResult)
	// background says that the patch uses no worker.
	background bool
	// restores is the workload that the patch creates again, if it is not the patched one.
	restores workload.Key
	// decided is when the decisions were made.
	decided time.Time
	// pending contains the changes to release when the patch is finished. It is nil if there are none.
	pending *pending
	// attempts counts the failed patches before this one.
	attempts int
	// span is the ended span of the decision, the parent of later spans. The caller of newTask sets it.
	span trace.Span
}

// key is the workload that must not have another task meanwhile.
func (r *task) key() workload.Key { return cmp.Or(r.restores, r.workload.Key()) }

// context returns ctx with the decision's span and without its cancellation, as a started patch is finished.
func (r *task) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.WithoutCancel(ctx), r.span)
}

// newTask makes the patch for the decisions, which are in the order of their sources. Equal changes always make an equal patch.
func newTask(k workload.Kind, w *workload.Workload, decisions []plan.Decision, p *pending, now time.Time) (*task, error) {
	r := &task{
		kind: k, workload: w, decisions: decisions, cause: describeCause(decisions, p.changes),
		decided: now, pending: p, attempts: p.attempts, content: make(map[string]workload.RolledFor, len(decisions)),
	}
	keys := make(map[events.Source][]string)
	for _, decision := range decisions {
		keys[decision.Source] = decision.Keys
		r.content[decision.Source.String()] = decision.Record
		if decision.Reason.Action() == plan.Roll {
			r.forDeletion = r.forDeletion || decision.Reason == plan.Deleted
			r.causes = append(r.causes, p.changes[decision.Source])
		}
	}
	slices.SortStableFunc(r.causes, older)
	if len(r.causes) > 0 {
		r.way = p.way
		r.rolls = !r.way.inPlace
		if r.way.inPlace && maps.Equal(p.answered.content, r.content) {
			r.reloaded = p.answered.pods
		}
	}
	write := workload.Write{Rolled: r.content, Rolls: r.rolls, InPlace: r.way.inPlace, RolledAt: now, Cause: r.cause}
	if len(r.causes) > 0 {
		// This is the context of the change: that of the decision would differ at each attempt.
		write.Traceparent = r.newest().change.Trace.Parent
		for _, c := range r.causes {
			write.Changes = append(write.Changes, workload.Change{
				Source: c.change.Source, At: c.change.Time, Written: writtenAt(c.change), Since: c.since, Keys: keys[c.change.Source],
			})
		}
		last := w.NextLast(write)
		write.Last = &last
	}
	var err error
	r.patch, err = k.Patch(w, write)
	return r, err
}

// writtenAt returns when a change was written by the API server's clock, zero if unknown, as for a deletion or a secret in a store.
func writtenAt(change events.Change) time.Time {
	if change.Verb == events.VerbDeleted || change.Source.Kind == events.KindOpenBao {
		return time.Time{}
	}
	return change.WrittenAt
}

func (r *task) newest() *pendingChange { return r.causes[len(r.causes)-1] }

// older orders changes by resourceVersion, and then by source.
func older(a, b *pendingChange) int {
	return cmp.Or(events.CompareVersions(a.change.ResourceVersion, b.change.ResourceVersion), bySource(a, b))
}

// maxCause is the length of a cause, in bytes, after which further sources are only counted. Users read it on the pod template.
const maxCause = 1 << 10

// describeCause returns the sources of a patch with their causes: "secret/db (password) by externalsecret/db, configmap/app".
func describeCause(decisions []plan.Decision, changes map[events.Source]*pendingChange) string {
	var causes []string
	size, more := 0, 0
	for _, decision := range decisions {
		if decision.Reason.Action() != plan.Roll {
			continue
		}
		text := decision.Source.String()
		if len(decision.Keys) > 0 {
			text += " (" + workload.JoinKeys(decision.Keys) + ")"
		}
		if behind := changes[decision.Source].change.Cause; behind != nil {
			text = strings.TrimSpace(text + " " + behind.String())
		}
		if size += len(text); size > maxCause && len(causes) > 0 {
			more++
			continue
		}
		causes = append(causes, text)
	}
	if more > 0 {
		causes = append(causes, strconv.Itoa(more)+" more")
	}
	return strings.Join(causes, ", ")
}

// patchResult is the result of a patch.
type patchResult struct {
	task *task
	// after is the workload in the API server's response, which arrived at the time at.
	after *workload.Workload
	at    time.Time
	// reloaded is the number of pods that have answered a request to reload before the patch.
	reloaded int
	// unrecorded is why the record could not be written on the workload, or nil.
	unrecorded error
	err        error
}
