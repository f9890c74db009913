package actuate

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// pending is a workload with changes that are not decided yet.
type pending struct {
	key workload.Key
	// seen is the workload as it was when the newest change came. It may be gone since.
	seen    *workload.Workload
	changes map[events.Source]*pendingChange
	first   time.Time
	// due is when the workload is to be decided, zero if it waits for no time.
	due time.Time
	way way
	tries
	// held is why it waits although it is due, plan.None if it does not.
	held plan.Reason
	// reported has the last reason to wait that an outcome gave, and those of the same kind just before it if that is the lack of a slot.
	reported []plan.Reason
	// paced is when it may be rolled, if nothing but its pace delays that. Otherwise it is zero.
	paced time.Time
	// fresh is when it was first to be rolled for something for which it was not rolled again and again before. Zero: it was not.
	fresh time.Time
	// rested says that it waited as people have chosen when it was last looked at: see admission.isChosen. woke is when that was first over.
	rested bool
	woke   time.Time
	// rollsSince is when the first of the changes that are to roll it came, as last decided. It is zero if none is to roll it.
	rollsSince time.Time
	// pauseAsked is when a patch was last sent to note that its pause has begun, zero if none was.
	pauseAsked time.Time
	// gathered is the end of the workload's own pause that it has waited for. Content that came and went before that is no reason to roll.
	gathered time.Time
	// noteAt is when it is looked at again whether all is noted on it. Zero means the next time.
	noteAt time.Time
}

// tries says what has come of the attempts to patch a workload. A later entry of the same workload keeps it.
type tries struct {
	// attempts counts the failed patches. The next one is not sent before retryAt.
	attempts int
	retryAt  time.Time
	// denied is the content of the record that was last refused, denials how often, and deniedAs the workload then, nil if it has changed since.
	denied   map[string]workload.RolledFor
	denials  int
	deniedAs *workload.Workload
	// refused says that it was refused so often that nobody waits for the workload.
	refused bool
	// notReloaded is why its pods could not be asked to reload, or empty if that was not tried.
	notReloaded string
	// answered is the content for which all pods answered a request to reload, before the patch that records it failed.
	answered answered
	// filesSince is since when it waits for nothing but its files. It is zero if it does not.
	filesSince time.Time
	// unnoted counts the patches that failed to note what it waits for. The next one is not sent before noteRetry.
	unnoted   int
	noteRetry time.Time
}

// way is how a workload gets changes that roll it.
type way struct {
	// inPlace says that its pods are asked to reload. Otherwise they are replaced, and instead is why, if the workload opts in to a reload.
	inPlace bool
	instead string
	// refreshed is when the kubelets have refreshed their files.
	refreshed time.Time
}

// answered is that pods have answered a request to reload content, by source.
type answered struct {
	content map[string]workload.RolledFor
	pods    int
}

// isGathered reports whether the debounce window of the workload is open. A nil pending has none.
func (p *pending) isGathered() bool {
	return p != nil && p.held == plan.None && p.paced.IsZero() && p.attempts == 0
}

// owes reports whether the workload is to be rolled for any of the changes. A nil pending has none.
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

// memory returns what is remembered of a change. If it came before the end of the workload's own pause, it is as if it had just come.
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

// age returns how long the oldest of the changes has waited, as far as this leader knows.
func (p *pending) age(now time.Time) time.Duration {
	oldest := now
	for _, c := range p.changes {
		if c.since.Before(oldest) {
			oldest = c.since
		}
	}
	return now.Sub(oldest)
}

// owedFor returns for how long it has waited to be rolled without anybody having chosen so.
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

// waitedSince returns since when a change has waited without anybody having chosen so: since the watcher saw it, or the last chosen wait ended.
func (p *pending) waitedSince(c *pendingChange) time.Time {
	if c.change.Time.After(p.woke) {
		return c.change.Time
	}
	return p.woke
}

// isReported reports whether an outcome was published for a reason to wait, or another one of that kind, since it waited for anything else.
func (p *pending) isReported(why plan.Reason) bool { return slices.Contains(p.reported, why) }

// report records that an outcome is published for a reason to wait.
func (p *pending) report(why plan.Reason) {
	if why.Waiting() != plan.ForSlot || len(p.reported) > 0 && p.reported[0].Waiting() != plan.ForSlot {
		p.reported = nil
	}
	p.reported = append(p.reported, why)
}

// isRewritten reports whether more than the status of a workload was written since its patch was refused. It is nil if it is gone.
func (p *pending) isRewritten(w *workload.Workload) bool {
	was := p.deniedAs
	return was != nil && w != nil && (w.Generation != was.Generation || !w.Edited.Equal(was.Edited))
}

// tryAnew makes the next attempt not wait after a refusal: something has changed, which came first at the given time.
func (p *pending) tryAnew(first time.Time) {
	p.first, p.retryAt, p.deniedAs, p.refused = first, time.Time{}, nil, false
}

// merge folds an older entry of the same workload into p. If both have a change of a source, that of p is newer.
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

// pendingChange is a change of one source that one workload has to be decided for.
type pendingChange struct {
	change events.Change
	// from is the content before the first change that is not decided yet, or nil if that is not known.
	from *events.Change
	// owed means that the workload was to be rolled for it when that was last decided, or before.
	owed bool
	// event replaces earlier events of the source: keeping them all would fill the memory if a source is written again and again.
	event *takenEvent
	// since is when the first change of the source came, possibly to an earlier leader.
	since time.Time
	// earlier are the spans of the replaced events, the newest last.
	earlier []trace.SpanContext
}

// follow makes the change that of a later event of the source.
func (c *pendingChange) follow(e *takenEvent) {
	before := c.event
	c.change, c.event = e.change, e
	e.Hold()
	c.earlier = newestSpans(c.earlier, e.earlier...)
	if before != nil {
		c.replace(before)
	}
}

// replace takes the place of an earlier event of the source.
func (c *pendingChange) replace(before *takenEvent) {
	c.earlier = newestSpans(c.earlier, before.span.SpanContext())
	before.span.AddLink(trace.Link{SpanContext: c.event.span.SpanContext()})
	before.release()
}

// newestSpans returns earlier spans and those that follow them, as far as they are kept.
func newestSpans(earlier []trace.SpanContext, more ...trace.SpanContext) []trace.SpanContext {
	earlier = append(earlier, more...)
	return earlier[max(0, len(earlier)-maxEarlier):]
}
