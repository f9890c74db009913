package actuate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// order decides who of the workloads of one namespace waits for whom, from one snapshot of them. Whoever waits does so for a workload that is being
// rolled, for one that has failed, or for one that comes before it: by wave, then those that can go first, by pods and name. A rollout ends by
// itself, and those that have failed wait for nobody. So there is always one that may go. See docs/adr/0052-one-order-in-a-namespace.md.
type order struct {
	// always is --canary: one workload goes first with every change, and not only after a failure.
	always bool
	// readers returns the workloads that read a source, in no order.
	readers func(events.Source) []*member
	// suspecting are those because of which changes are suspect: they have failed, or had failed when their rollout was replaced.
	suspecting []*member
	// standings has what was found out so far.
	standings map[sourceChange]*standing
}

// sourceChange is one change of some keys of a source.
type sourceChange struct {
	source              events.Source
	version, uid, scope string
}

// member is what the others need to know of a workload.
type member struct {
	key  workload.Key
	wave int
	pods int32
	// goes says that it is rolled for what it owes as soon as others let it: neither people nor a time that they chose hold it, and isRefused is not
	// set. That says that its patch is refused, and was told.
	goes, isRefused bool
	// tries says that its pods show whether they work with what they read, isReady that they do now, and canGoFirst that a roll would show it: it
	// goes, and no patch has failed.
	tries, isReady, canGoFirst bool
	// failsBefore says that it failed before the roll that is to come, or in progress, which thus says nothing about a change.
	failsBefore bool
	// hasFailed says that its last rollout has failed.
	hasFailed bool
	// isRolling says that it is being patched or rolled out, and does not wait for people. isFollowed is so also if it does. rollsFor has the
	// names of the sources that this is for.
	isRolling, isFollowed bool
	rollsFor              []string
	// owes has the changes that it is to be rolled for, and starts the sources that its pods have once its own rollout has replaced them.
	owes   map[events.Source]workload.RolledFor
	starts []events.Source
	// has is its record, by the names of sources, and writes what a patch under way writes there. suspects has the changes for which it has failed,
	// also if its rollout was undone.
	has, writes, suspects map[string]workload.RolledFor
}

// standing is how the workloads of a namespace stand with one change of a source.
type standing struct {
	// failed has failed for the change, and lowest is the workload of the lowest wave that is not finished with the source. They are nil if there is
	// none.
	failed, lowest *member
	// isProven says that the pods of somebody are ready with the change.
	isProven bool
	// first goes first with the change, nil if nobody has to. isTried says that it is being rolled for that.
	first   *member
	isTried bool
}

// wait returns for whom a workload waits, and why: a failure comes before a canary, and that before a lower wave. The reason is plan.None if it waits
// for nobody.
func (o *order) wait(w *member) (plan.Reason, *member) {
	if w.hasFailed || w.failsBefore {
		return plan.None, nil // It may be the repair.
	}
	sources := make([]events.Source, 0, len(w.owes))
	for source := range w.owes {
		sources = append(sources, source)
	}
	slices.SortFunc(sources, func(a, b events.Source) int { return strings.Compare(a.String(), b.String()) })
	why, peer := plan.None, (*member)(nil)
	for _, source := range sources {
		s := o.standing(source, w.owes[source])
		switch {
		case s.failed != nil:
			return plan.PeerFailed, s.failed
		case why != plan.CanaryFirst && s.first != nil && s.first.key != w.key && (s.isTried || s.first.wave <= w.wave):
			why, peer = plan.CanaryFirst, s.first
		case why == plan.None && s.lowest != nil && s.lowest.wave < w.wave:
			why, peer = plan.LowerWave, s.lowest
		}
	}
	return why, peer
}

// standing returns how the workloads stand with a change.
func (o *order) standing(source events.Source, change workload.RolledFor) *standing {
	of := sourceChange{source, change.Version, change.UID, change.Scope}
	if s := o.standings[of]; s != nil {
		return s
	}
	s, name := new(standing), source.String()
	isSuspect := o.always
	for _, m := range o.suspecting {
		isBlamed := m.suspects[name].SameChange(change)
		if isSuspect = isSuspect || isBlamed; isBlamed && m.hasFailed {
			s.failed = earlier(s.failed, m)
		}
	}
	var tried, candidate *member
	for _, m := range o.readers(source) {
		if m.isUnfinished(source) {
			s.lowest = earlier(s.lowest, m)
		}
		_, owes := m.owes[source]
		switch {
		case !m.tries:
		case m.hasChange(name, change) && m.isRolling && !m.failsBefore:
			tried = earlier(tried, m)
		case m.hasChange(name, change) && m.isReady && !m.isFollowed && !m.hasFailed:
			s.isProven = true
		case owes && m.canGoFirst && (m.isReady || m.isRolling) && !m.failsBefore && !o.isBlocked(m):
			candidate = earlier(candidate, m) // If its pods are being replaced for an earlier change, this one may be what they lack.
		}
	}
	if isSuspect && !s.isProven {
		s.first, s.isTried = cmp.Or(tried, candidate), tried != nil
	}
	o.standings[of] = s
	return s
}

// isBlocked reports whether a workload owes a change for which another one has failed.
func (o *order) isBlocked(w *member) bool {
	if w.hasFailed {
		return false
	}
	for source, change := range w.owes {
		isBlamed := func(m *member) bool { return m.hasFailed && m.suspects[source.String()].SameChange(change) }
		if slices.ContainsFunc(o.suspecting, isBlamed) {
			return true
		}
	}
	return false
}

// isAwaited reports whether others wait to see whether the pods of a workload stay ready with what it was rolled for. Missing has the changes that
// others may wait for although nobody has seen that yet.
func (o *order) isAwaited(w *member, sources []events.Source, missing map[string]workload.RolledFor) bool {
	for _, source := range sources {
		name := source.String()
		for _, m := range o.readers(source) {
			if m.key == w.key {
				continue
			}
			if change, owes := m.owes[source]; owes && !m.isRefused && w.hasChange(name, change) && !o.standing(source, change).isProven {
				return true
			}
			if change, is := missing[name]; is && !m.has[name].SameChange(change) && !o.standing(source, change).isProven {
				return true
			}
		}
	}
	return false
}

// hasChange reports whether a workload was rolled for a change, or a later one of the same keys of its source, or its patch for that is under way.
func (m *member) hasChange(source string, change workload.RolledFor) bool {
	last, writes := m.writes[source]
	if !writes {
		last = m.has[source]
	}
	covers := last.Scope == change.Scope || last.Scope == workload.ScopeOf(nil)
	return last.SameChange(change) || covers && last.UID == change.UID && !last.IsOwed() && events.Newer(last.Version, change.Version)
}

// isUnfinished reports whether higher waves wait for a workload because of a source.
func (m *member) isUnfinished(source events.Source) bool {
	if m.failsBefore {
		return false
	}
	_, owes := m.owes[source]
	return m.isRolling && slices.Contains(m.rollsFor, source.String()) || m.goes && (owes || slices.Contains(m.starts, source))
}

// earlier returns which of two workloads comes first. The one of before is nil if there is none.
func earlier(before, m *member) *member {
	if before == nil || cmp.Or(
		cmp.Compare(m.wave, before.wave), cmp.Compare(m.pods, before.pods), strings.Compare(m.key.Kind, before.key.Kind),
		strings.Compare(m.key.Name, before.key.Name),
	) < 0 {
		return m
	}
	return before
}
