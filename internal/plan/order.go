package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Order decides which workloads of a namespace wait for which others, given a snapshot of them. A workload waits for one that is being rolled, that
// has failed, or that comes before it: by wave, then whether it can go first, then by pods and name. A rollout ends by itself, and failed workloads
// wait for nobody, so there is always one that may go. See docs/adr/0052-one-order-in-a-namespace.md.
type Order struct {
	// Always is set with --canary: one workload goes first with every change, and not only after a failure.
	Always bool
	// Readers returns the workloads that read a source, in no order.
	Readers func(events.Source) []*Member
	// Suspecting are the workloads that make changes suspect: they have failed, or had failed when their rollout was replaced.
	Suspecting []*Member
	// standings contains the results so far.
	standings map[sourceChange]*standing
}

// sourceChange is one change of some keys of a source.
type sourceChange struct {
	source              events.Source
	version, uid, scope string
	isDeletion          bool
}

// Member is the state of a workload that matters to others.
type Member struct {
	Key  workload.Key
	Wave int
	Pods int32
	// Goes says that the workload rolls as soon as others let it: no user's choice holds it, and IsRefused is not set. IsRefused says that its patch
	// is refused, and that this was reported.
	Goes, IsRefused bool
	// Tries says that its pods show whether they work with their sources, IsReady that they work now, and CanGoFirst that a roll would show it: Goes
	// is set, and no patch has failed.
	Tries, IsReady, CanGoFirst bool
	// FailsBefore says that it failed before its next or current roll, so that this roll says nothing about a change.
	FailsBefore bool
	// HasFailed says that its last rollout has failed.
	HasFailed bool
	// IsRolling says that it is being patched or rolled out, and does not wait for people. IsFollowed is set even if it does. RollsFor contains the
	// names of the sources of this rollout, and of the unfinished rollouts that it has replaced.
	IsRolling, IsFollowed bool
	RollsFor              []string
	// Owes contains the changes to roll for; Starts contains the sources that its pods will have after its own rollout.
	Owes   map[events.Source]workload.RolledFor
	Starts []events.Source
	// Has is its record, by source name, and Writes the part of a patch in flight. Suspects contains the changes that it has failed with, even if the
	// rollout was undone.
	Has, Writes, Suspects map[string]workload.RolledFor
}

// standing is the state of the workloads of a namespace with respect to one change of a source.
type standing struct {
	// failed has failed with the change; lowest is the unfinished workload of the lowest wave. They are nil if there is none.
	failed, lowest *Member
	// isProven says that the pods of a workload are ready with the change.
	isProven bool
	// first goes first with the change, nil if no workload must. isTried says that it is rolling, or about to: a failed workload waits for nobody.
	first   *Member
	isTried bool
}

// Wait returns which workload w waits for, and why: a failure takes precedence over a canary, and a canary over a lower wave. The reason is None if
// it waits for nobody.
func (o *Order) Wait(w *Member) (Reason, *Member) {
	if w.HasFailed || w.FailsBefore {
		return None, nil // The change may be the fix.
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
		case why == None && s.lowest != nil && s.lowest.Key != w.Key && s.lowest.Wave < w.Wave:
			why, peer = LowerWave, s.lowest
		}
	}
	return why, peer
}

// standing returns the standing of a change.
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
		_, owes := m.Owes[source]
		if m.isUnfinished(source, owes) {
			s.lowest = earlier(s.lowest, m)
		}
		switch {
		case !isSuspect || !m.Tries:
		case m.hasChange(name, change) && m.IsRolling && !m.FailsBefore:
			tried = earlier(tried, m)
		case m.hasChange(name, change) && m.IsReady && !m.IsFollowed && !m.HasFailed:
			s.isProven = true
		case owes && m.HasFailed && m.CanGoFirst && !m.FailsBefore:
			tried = earlier(tried, m)
		case owes && m.CanGoFirst && (m.IsReady || m.IsRolling) && !m.FailsBefore && earlier(candidate, m) == m && !o.isBlocked(m):
			candidate = m // If its pods are being replaced for an earlier change, this one may be the fix.
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

// isBlocked reports whether a workload owes a change that another one has failed with.
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

// IsAwaited reports whether others wait for the pods of a workload to stay ready after its roll. Missing contains the changes that others may wait
// for although no decision says so yet.
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

// hasChange reports whether a workload was rolled for a change, or a later one of the same keys, or has a patch for it in flight.
func (m *Member) hasChange(source string, change workload.RolledFor) bool {
	last, writes := m.Writes[source]
	if !writes {
		last = m.Has[source]
	}
	covers := last.Scope == change.Scope || last.Scope == workload.ScopeOf(nil)
	return isSame(last, change) || covers && last.UID == change.UID && !last.IsOwed() && events.Newer(last.Version, change.Version)
}

// isSame reports whether both entries are about the same change. A deletion has the version of the previous event.
func isSame(a, b workload.RolledFor) bool { return a.SameChange(b) && a.IsDeleted() == b.IsDeleted() }

// isUnfinished reports whether higher waves wait for a workload because of a source, of which it may owe a change.
func (m *Member) isUnfinished(source events.Source, owes bool) bool {
	if m.FailsBefore {
		return false
	}
	return m.IsRolling && slices.Contains(m.RollsFor, source.String()) || m.Goes && (owes || slices.Contains(m.Starts, source))
}

// earlier returns the workload that comes first. Before may be nil.
func earlier(before, m *Member) *Member {
	if before == nil || cmp.Or(
		cmp.Compare(m.Wave, before.Wave), cmp.Compare(m.Pods, before.Pods), strings.Compare(m.Key.Kind, before.Key.Kind),
		strings.Compare(m.Key.Name, before.Key.Name),
	) < 0 {
		return m
	}
	return before
}
