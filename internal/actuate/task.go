package actuate

import (
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

// task is one patch of one workload. The goroutine that sends it reads it, so it does not change after its start; only the loop looks into pending.
type task struct {
	kind     workload.Kind
	workload *workload.Workload
	// decisions are those that roll or record, in the order of their sources.
	decisions []plan.Decision
	// causes are the changes of the decisions that roll, the newest last.
	causes []*pendingChange
	cause  string
	// content is what is new in the record, by source.
	content map[string]workload.RolledFor
	// rolls is false for a patch that only records, also after pods were asked to reload, if way says so.
	rolls bool
	way   way
	// reloaded is how many pods have answered a request to reload this content before an earlier attempt. They are not asked again.
	reloaded int
	// forDeletion says that one of the sources was deleted, which may be with the whole namespace.
	forDeletion bool
	patch       workload.Patch
	// finish is called with the result of a patch that is for no pending change. If nil, the dispatcher takes it.
	finish func(context.Context, patchResult)
	// background says that the patch takes no worker from others.
	background bool
	// restores is the workload that the patch creates again, if that is not its own.
	restores workload.Key
	// decided is when the decisions were made.
	decided time.Time
	// pending has the changes that are released when the patch is finished. It is nil if the patch is for none.
	pending *pending
	// attempts counts the failed patches before this one.
	attempts int
	// span is that of the decision, which has ended. What follows is traced below it. The caller of newTask sets it.
	span trace.Span
}

// key is the workload that nothing else may be done with meanwhile.
func (r *task) key() workload.Key {
	if r.restores != (workload.Key{}) {
		return r.restores
	}
	return r.workload.Key()
}

// context returns ctx with the span of the decision, and without its cancellation: a patch that was started is finished.
func (r *task) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.WithoutCancel(ctx), r.span)
}

// newTask makes the one patch of a workload, given the decisions in the order of their sources. The same changes always give the same patch.
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
		// The context of the change, not of the decision: that one would be another at each attempt.
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

// writtenAt returns when a change was written by the API server's clock, zero if that is not known, as for a deletion or a path in a store.
func writtenAt(change events.Change) time.Time {
	if change.Verb == events.VerbDeleted || change.Source.Kind == events.KindOpenBao {
		return time.Time{}
	}
	return change.WrittenAt
}

func (r *task) newest() *pendingChange { return r.causes[len(r.causes)-1] }

// older orders changes by their resourceVersion, and by their source if that does not decide.
func older(a, b *pendingChange) int {
	if order := events.CompareVersions(a.change.ResourceVersion, b.change.ResourceVersion); order != 0 {
		return order
	}
	return strings.Compare(a.change.Source.String(), b.change.Source.String())
}

// maxCause is how long a cause may be before the sources that follow are only counted. A person reads it, on the pod template.
const maxCause = 1 << 10

// describeCause returns what a patch is for, and what was behind it: "secret/db (password) by externalsecret/db, configmap/app".
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
	// after is the workload in the API server's answer, which came at a time.
	after *workload.Workload
	at    time.Time
	// reloaded is the number of pods that have answered a request to reload before the patch.
	reloaded int
	// unrecorded is why the record could not be written on the workload, or nil if it could.
	unrecorded error
	err        error
}
