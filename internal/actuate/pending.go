package actuate

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// pending is a workload with undecided changes.
type pending struct {
	key workload.Key
	// seen is the workload when the newest change arrived. The workload may have been deleted since.
	seen    *workload.Workload
	changes map[events.Source]*pendingChange
	first   time.Time
	// due is when to decide about the workload, zero if it waits for no time.
	due time.Time
	way way
	tries
	// held is why it waits although it is due, plan.None if it does not.
	held plan.Reason
	// reported contains the last reported reason to wait. If that is the lack of a slot, the reasons of this kind just before it are included.
	reported []plan.Reason
	// paced is when it may be rolled if only its pace delays the roll. Otherwise it is zero.
	paced time.Time
	// fresh is when it was first to be rolled for something new to the consecutive rolls, zero if it was not. See pacedRoll.
	fresh time.Time
	// rested says that its last decision was a wait that users chose (admission.isChosen). woke is when such a wait last ended.
	rested bool
	woke   time.Time
	// rollsSince is when the first change that requires a roll arrived, according to the last decision. It is zero if none requires a roll.
	rollsSince time.Time
	// pauseAsked is when a patch was last sent to note the beginning of its pause, zero if none was.
	pauseAsked time.Time
	// gathered is the end of the workload's own pause. Content that came and went before it needs no roll.
	gathered time.Time
	// noteAt is when to check again whether all is noted on the workload. Zero means at the next look.
	noteAt time.Time
}

// tries counts the attempts to patch a workload, and keeps their results. A later entry of the same workload inherits it.
type tries struct {
	// attempts counts the failed patches. The next one is not sent before retryAt.
	attempts int
	retryAt  time.Time
	// denied is the record content of the last denied patch, denials its count, and deniedAs the workload then, nil if it has changed since.
	denied   map[string]workload.RolledFor
	denials  int
	deniedAs *workload.Workload
	// refused says that the patch was denied so often that nobody waits for the workload.
	refused bool
	// notReloaded is why its pods could not be asked to reload, empty if they were not asked.
	notReloaded string
	// answered is the content for which all pods have answered a request to reload before the patch that records it failed.
	answered answered
	// filesSince is since when it has waited only for its files, zero if it does not.
	filesSince time.Time
	// unnoted counts failed attempts to note its pending changes. The next attempt is not sent before noteRetry.
	unnoted   int
	noteRetry time.Time
}

// way is the method by which a workload gets changes that roll it.
type way struct {
	// inPlace says that its pods are asked to reload. Otherwise they are replaced, and instead is why, if the workload opts in to reloads.
	inPlace bool
	instead string
	// refreshed is when the kubelets have refreshed the files.
	refreshed time.Time
}

// answered is the number of pods that have answered a request to reload content, by source.
type answered struct {
	content map[string]workload.RolledFor
	pods    int
}

// isGathered reports whether the debounce window of the workload is open. P may be nil.
func (p *pending) isGathered() bool {
	return p != nil && p.held == plan.None && p.paced.IsZero() && p.attempts == 0
}

// owes reports whether the workload is to be rolled for any of the changes. P may be nil.
func (p *pending) owes() bool {
	if p == nil {
		return false
	}
	for _, c := range p.changes {
		if c.owed {
			return true
		}
	}
	return false
}

// memory returns what is remembered of a change. A change that arrived before the end of the workload's own pause counts as new.
func (p *pending) memory(c *pendingChange, now time.Time) plan.Memory {
	memory := plan.Memory{Since: c.since, From: c.from, Owed: c.owed}
	switch {
	case p.gathered.IsZero():
	case !c.event.at.After(p.gathered):
		memory.Since = now
	case p.gathered.After(memory.Since):
		memory.Since = p.gathered
	}
	return memory
}

// age returns how long the oldest change has waited, as far as this leader knows.
func (p *pending) age(now time.Time) time.Duration {
	oldest := now
	for _, c := range p.changes {
		if c.since.Before(oldest) {
			oldest = c.since
		}
	}
	return now.Sub(oldest)
}

// owedFor returns how long the workload has waited to be rolled without a user's choice to wait.
func (p *pending) owedFor(now time.Time) time.Duration {
	if p.rested {
		return 0
	}
	var longest time.Duration
	for _, c := range p.changes {
		since := c.since
		if p.woke.After(since) {
			since = p.woke
		}
		if c.owed {
			longest = max(longest, now.Sub(since))
		}
	}
	return longest
}

// waitedSince returns since when a change has waited without a user's choice: since the watcher saw it, or since the last chosen wait ended.
func (p *pending) waitedSince(c *pendingChange) time.Time {
	if c.change.Time.After(p.woke) {
		return c.change.Time
	}
	return p.woke
}

// isReported reports whether an outcome was published for a reason to wait, without another kind of wait since.
func (p *pending) isReported(why plan.Reason) bool { return slices.Contains(p.reported, why) }

// report remembers that an outcome was published for a reason to wait.
func (p *pending) report(why plan.Reason) {
	if why.Waiting() != plan.ForSlot || len(p.reported) > 0 && p.reported[0].Waiting() != plan.ForSlot {
		p.reported = nil
	}
	p.reported = append(p.reported, why)
}

// isRewritten reports whether more than the status of a workload was written since its patch was denied. The workload is nil if it was deleted.
func (p *pending) isRewritten(w *workload.Workload) bool {
	was := p.deniedAs
	return was != nil && w != nil && (w.Generation != was.Generation || !w.Edited.Equal(was.Edited))
}

// tryAnew ends the wait after a denial because something has changed. First is when the change arrived.
func (p *pending) tryAnew(first time.Time) {
	p.first, p.retryAt, p.deniedAs, p.refused = first, time.Time{}, nil, false
}

// merge folds an older entry of the same workload into p. For sources with a change in both, that of p is newer.
func (p *pending) merge(older *pending) {
	for source, old := range older.changes {
		if c, ok := p.changes[source]; ok {
			c.owed, c.since = c.owed || old.owed, old.since
			c.replace(old.event)
		} else {
			p.changes[source] = old
		}
	}
	if older.gathered.After(p.gathered) {
		p.gathered = older.gathered
	}
	if older.woke.After(p.woke) {
		p.woke = older.woke
	}
	p.first, p.tries = older.first, older.tries
}

// maxEarlier is how many spans of earlier events are kept.
const maxEarlier = 16

// pendingChange is an undecided change of one source for one workload.
type pendingChange struct {
	change events.Change
	// from is the content before the first undecided change, or nil if unknown.
	from *events.Change
	// owed means that the last decision about the change, or an earlier one, was to roll the workload.
	owed bool
	// event replaces earlier events of the source, which would fill the memory if a source is written again and again.
	event *takenEvent
	// since is when the first change of the source arrived, possibly at an earlier leader.
	since time.Time
	// earlier are the spans of the replaced events, the newest last.
	earlier []trace.SpanContext
}

// follow replaces the change with that of a later event of the source.
func (c *pendingChange) follow(e *takenEvent) {
	before := c.event
	c.change, c.event = e.change, e
	e.Hold()
	c.earlier = newestSpans(c.earlier, e.earlier...)
	if before != nil {
		c.replace(before)
	}
}

// replace releases an earlier event of the source and keeps its span.
func (c *pendingChange) replace(before *takenEvent) {
	c.earlier = newestSpans(c.earlier, before.span.SpanContext())
	before.span.AddLink(trace.Link{SpanContext: c.event.span.SpanContext()})
	before.release()
}

// newestSpans returns the newest spans of both lists, at most maxEarlier.
func newestSpans(earlier []trace.SpanContext, more ...trace.SpanContext) []trace.SpanContext {
	earlier = append(earlier, more...)
	return earlier[max(0, len(earlier)-maxEarlier):]
}
