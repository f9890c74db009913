package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Order decides who of the workloads of one namespace waits for whom, from one snapshot of them. A workload waits for one that is being rolled, for
// one that has failed, or for one that comes before it: by wave, then those that can go first, by pods and name. A rollout ends by itself, and those
// that have failed wait for nobody. So there is always one that may go. See docs/adr/0052-one-order-in-a-namespace.md.
type Order struct {
	// Always is --canary: one workload goes first with every change, and not only after a failure.
	Always bool
	// Readers returns the workloads that read a source, in no order.
	Readers func(events.Source) []*Member
	// Suspecting are those because of which changes are suspect: they have failed, or had failed when their rollout was replaced.
	Suspecting []*Member
	// standings has what was found out so far.
	standings map[sourceChange]*standing
}

// sourceChange is one change of some keys of a source.
type sourceChange struct {
	source              events.Source
	version, uid, scope string
	isDeletion          bool
}

// Member is what the others need to know of a workload.
type Member struct {
	Key  workload.Key
	Wave int
	Pods int32
	// Goes says that it is rolled for what it owes as soon as others let it: neither people nor a time that they chose hold it, and IsRefused is not
	// set. IsRefused says that its patch is refused, and that this was reported.
	Goes, IsRefused bool
	// Tries says that its pods show whether they work with what they read, IsReady that they do now, and CanGoFirst that a roll would show it: it
	// goes, and no patch has failed.
	Tries, IsReady, CanGoFirst bool
	// FailsBefore says that it failed before the roll that is to come, or in progress, which thus says nothing about a change.
	FailsBefore bool
	// HasFailed says that its last rollout has failed.
	HasFailed bool
	// IsRolling says that it is being patched or rolled out, and does not wait for people. IsFollowed is so also if it does. RollsFor has the
	// names of the sources that this is for, and those of rollouts that it has replaced before they were complete.
	IsRolling, IsFollowed bool
	RollsFor              []string
	// Owes has the changes that it is to be rolled for, and Starts the sources that its pods have once its own rollout has replaced them.
	Owes   map[events.Source]workload.RolledFor
	Starts []events.Source
	// Has is its record, by the names of sources, and Writes what a patch under way writes there. Suspects has the changes for which it has failed,
	// also if its rollout was undone.
	Has, Writes, Suspects map[string]workload.RolledFor
}

// standing is how the workloads of a namespace stand with one change of a source.
type standing struct {
	// failed has failed for the change, and lowest is the workload of the lowest wave that is not finished with the source. They are nil if there is
	// none.
	failed, lowest *Member
	// isProven says that the pods of somebody are ready with the change.
	isProven bool
	// first goes first with the change, nil if nobody has to. isTried says that it is being rolled for that, or goes now: one that has failed waits
	// for nobody.
	first   *Member
	isTried bool
}

// Wait returns for whom a workload waits, and why: a failure comes before a canary, and that before a lower wave. The reason is None if it waits for
// nobody.
func (o *Order) Wait(w *Member) (Reason, *Member) {
	if w.HasFailed || w.FailsBefore {
		return None, nil // It may be the repair.
	}
	byName := func(a, b events.Source) int { return strings.Compare(a.String(), b.String()) }
	why, peer := None, (*Member)(nil)
	for _, source := range slices.SortedFunc(maps.Keys(w.Owes), byName) {
		s := o.standing(source, w.Owes[source])
		switch {
		case s.failed != nil:
			return PeerFailed, s.failed
		case why != CanaryFirst && s.first != nil && s.first.Key != w.Key && (s.isTried || s.first.Wave <= w.Wave):
			why, peer = CanaryFirst, s.first
		case why == None && s.lowest != nil && s.lowest.Wave < w.Wave:
			why, peer = LowerWave, s.lowest
		}
	}
	return why, peer
}

// standing returns how the workloads stand with a change.
func (o *Order) standing(source events.Source, change workload.RolledFor) *standing {
	of := sourceChange{source, change.Version, change.UID, change.Scope, change.IsDeleted()}
	if s := o.standings[of]; s != nil {
		return s
	}
	s, name := new(standing), source.String()
	isSuspect := o.Always
	for _, m := range o.Suspecting {
		isBlamed := isSame(m.Suspects[name], change)
		if isSuspect = isSuspect || isBlamed; isBlamed && m.HasFailed {
			s.failed = earlier(s.failed, m)
		}
	}
	var tried, candidate *Member
	for _, m := range o.Readers(source) {
		if m.isUnfinished(source) {
			s.lowest = earlier(s.lowest, m)
		}
		_, owes := m.Owes[source]
		switch {
		case !isSuspect || !m.Tries:
		case m.hasChange(name, change) && m.IsRolling && !m.FailsBefore:
			tried = earlier(tried, m)
		case m.hasChange(name, change) && m.IsReady && !m.IsFollowed && !m.HasFailed:
			s.isProven = true
		case owes && m.HasFailed && m.CanGoFirst && !m.FailsBefore:
			tried = earlier(tried, m)
		case owes && m.CanGoFirst && (m.IsReady || m.IsRolling) && !m.FailsBefore && earlier(candidate, m) == m && !o.isBlocked(m):
			candidate = m // If its pods are being replaced for an earlier change, this one may be what they lack.
		}
	}
	if !s.isProven {
		s.first, s.isTried = cmp.Or(tried, candidate), tried != nil
	}
	if o.standings == nil {
		o.standings = make(map[sourceChange]*standing)
	}
	o.standings[of] = s
	return s
}

// isBlocked reports whether a workload owes a change for which another one has failed.
func (o *Order) isBlocked(w *Member) bool {
	if w.HasFailed {
		return false
	}
	for source, change := range w.Owes {
		isBlamed := func(m *Member) bool { return m.HasFailed && isSame(m.Suspects[source.String()], change) }
		if slices.ContainsFunc(o.Suspecting, isBlamed) {
			return true
		}
	}
	return false
}

// IsAwaited reports whether others wait to see whether the pods of a workload stay ready with what it was rolled for. Missing has the changes that
// others may wait for although nobody has seen that yet.
func (o *Order) IsAwaited(w *Member, sources []events.Source, missing map[string]workload.RolledFor) bool {
	for _, source := range sources {
		name := source.String()
		for _, m := range o.Readers(source) {
			if m.Key == w.Key {
				continue
			}
			if change, owes := m.Owes[source]; owes && !m.IsRefused && w.hasChange(name, change) && !o.standing(source, change).isProven {
				return true
			}
			if change, is := missing[name]; is && !isSame(m.Has[name], change) && !o.standing(source, change).isProven {
				return true
			}
		}
	}
	return false
}

// hasChange reports whether a workload was rolled for a change, or a later one of the same keys of its source, or its patch for that is under way.
func (m *Member) hasChange(source string, change workload.RolledFor) bool {
	last, writes := m.Writes[source]
	if !writes {
		last = m.Has[source]
	}
	covers := last.Scope == change.Scope || last.Scope == workload.ScopeOf(nil)
	return isSame(last, change) || covers && last.UID == change.UID && !last.IsOwed() && events.Newer(last.Version, change.Version)
}

// isSame reports whether both are about the same change. The event of a deletion has the version of the one before it.
func isSame(a, b workload.RolledFor) bool { return a.SameChange(b) && a.IsDeleted() == b.IsDeleted() }

// isUnfinished reports whether higher waves wait for a workload because of a source.
func (m *Member) isUnfinished(source events.Source) bool {
	if m.FailsBefore {
		return false
	}
	_, owes := m.Owes[source]
	return m.IsRolling && slices.Contains(m.RollsFor, source.String()) || m.Goes && (owes || slices.Contains(m.Starts, source))
}

// earlier returns which of two workloads comes first. The one of before is nil if there is none.
func earlier(before, m *Member) *Member {
	if before == nil || cmp.Or(
		cmp.Compare(m.Wave, before.Wave), cmp.Compare(m.Pods, before.Pods), strings.Compare(m.Key.Kind, before.Key.Kind),
		strings.Compare(m.Key.Name, before.Key.Name),
	) < 0 {
		return m
	}
	return before
}
