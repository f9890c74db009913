//go:build !race

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// There are two sources, and each has changed once.
var (
	orderDB     = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	orderApp    = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	changeOfDB  = workload.RolledFor{Fingerprint: "k:2", Version: "20", UID: "db"}
	changeOfApp = workload.RolledFor{Fingerprint: "k:2", Version: "30", UID: "app"}
)

// debtorOf returns a workload that is to be rolled for changes of sources, and goes as soon as others let it.
func debtorOf(sources ...events.Source) Member {
	m := Member{Pods: 1, Goes: true, Tries: true, IsReady: true, CanGoFirst: true, Owes: make(map[events.Source]workload.RolledFor)}
	for _, source := range sources {
		m.Owes[source] = orderChange(source)
	}
	return m
}

func orderChange(source events.Source) workload.RolledFor {
	if source == orderDB {
		return changeOfDB
	}
	return changeOfApp
}

// having returns a workload that was rolled for changes of sources, and is ready.
func having(sources ...events.Source) Member {
	m := Member{Pods: 1, Tries: true, IsReady: true, Has: make(map[string]workload.RolledFor)}
	for _, source := range sources {
		m.Has[source.String()] = orderChange(source)
	}
	return m
}

// but returns a workload that is different.
func (m Member) but(how func(*Member)) Member {
	how(&m)
	return m
}

// conditions are what the workloads of a namespace may be in.
var conditions = map[string]Member{
	"owes db":                        debtorOf(orderDB),
	"owes app":                       debtorOf(orderApp),
	"owes both":                      debtorOf(orderDB, orderApp),
	"owes both, and has more pods":   debtorOf(orderDB, orderApp).but(func(m *Member) { m.Pods = 3 }),
	"owes both, and has no pods":     debtorOf(orderDB, orderApp).but(func(m *Member) { m.Pods, m.Tries = 0, false }),
	"owes both, but was not patched": debtorOf(orderDB, orderApp).but(func(m *Member) { m.CanGoFirst = false }),
	"owes both, and is not ready":    debtorOf(orderDB, orderApp).but(func(m *Member) { m.IsReady = false }),
	"owes both, and failed before":   debtorOf(orderDB, orderApp).but(func(m *Member) { m.IsReady, m.FailsBefore = false, true }),
	"owes both, but is on hold":      debtorOf(orderDB, orderApp).but(func(m *Member) { m.Goes, m.CanGoFirst = false, false }),
	"is rolled for db, and owes app": debtorOf(orderApp).but(func(m *Member) {
		m.Has, m.IsReady, m.IsRolling, m.IsFollowed, m.RollsFor = having(orderDB).Has, false, true, true, []string{orderDB.String()}
	}),
	"is rolled for db and waits for people": having(orderDB).but(func(m *Member) { m.IsReady, m.IsFollowed = false, true }),
	"has both":                              having(orderDB, orderApp),
	"has failed for db":                     having(orderDB).but(fails),
	"has failed for db, and owes app":       debtorOf(orderApp).but(func(m *Member) { m.Has = having(orderDB).Has }).but(fails),
	"has failed for db, and was undone":     {Pods: 1, Tries: true, IsReady: true, Suspects: having(orderDB).Has},
}

func fails(m *Member) { m.IsReady, m.HasFailed, m.Suspects = false, true, having(orderDB).Has }

// placeNames are the names of the workloads.
var placeNames = []string{"web-0", "web-1", "web-2", "web-3"}

// orderOf returns the order of workloads that all read both sources.
func orderOf(always bool, members []*Member) *Order {
	o := &Order{Always: always, Readers: func(events.Source) []*Member { return members }}
	for i, m := range members {
		m.Key = workload.Key{Kind: "deployment", Namespace: "shop", Name: placeNames[i]}
		if m.Suspects != nil {
			o.Suspecting = append(o.Suspecting, m)
		}
	}
	return o
}

// place is a condition in a wave.
type place struct {
	name string
	wave int
}

// TestInEveryOrderSomebodyMayGo looks at all orders of up to four workloads in three waves, of which one may have failed.
func TestInEveryOrderSomebodyMayGo(t *testing.T) {
	most := len(placeNames)
	var places []place
	for name := range conditions {
		for wave := range 3 {
			places = append(places, place{name, wave})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	var search func(from int, chosen []place)
	search = func(from int, chosen []place) {
		if len(chosen) > 0 {
			for _, always := range []bool{false, true} {
				checkOrder(t, always, chosen)
				if len(chosen) < most { // By their names, they may as well be the other way around. Three are enough to show that.
					reversed := slices.Clone(chosen)
					slices.Reverse(reversed)
					checkOrder(t, always, reversed)
				}
			}
		}
		if len(chosen) == most {
			return
		}
		for i := from; i < len(places) && !t.Failed(); i++ {
			next := append(slices.Clip(chosen), places[i])
			isFailure := func(p place) bool { return strings.HasPrefix(p.name, "has failed") }
			if failures := slices.DeleteFunc(slices.Clone(next), func(p place) bool { return !isFailure(p) }); len(failures) < 2 {
				search(i, next)
			}
		}
	}
	search(0, nil)
}

func checkOrder(t *testing.T, always bool, places []place) {
	t.Helper()
	var members []*Member
	for _, p := range places {
		m := conditions[p.name]
		m.Wave = p.wave
		members = append(members, &m)
	}
	o := orderOf(always, members)
	waits := make(map[*Member]*Member, len(members))
	for _, m := range members {
		_, waits[m] = o.Wait(m)
	}
	for _, m := range members {
		last := waits[m]
		for range members { // A rollout ends by itself, whatever the workload waits for next.
			if last != nil && !last.IsRolling && waits[last] != nil {
				last = waits[last]
			}
		}
		switch {
		case last == nil || last.IsRolling || last.HasFailed:
		case waits[last] != nil:
			t.Errorf("canary %t, %v: %s waits in a circle", always, places, m.Key.Name)
		case !last.Goes || len(last.Owes) == 0:
			t.Errorf("canary %t, %v: %s waits for %s, which does not go", always, places, m.Key.Name, last.Key.Name)
		}
	}
	for _, source := range []events.Source{orderDB, orderApp} {
		var going []*Member
		for _, m := range members {
			if _, owes := m.Owes[source]; owes && waits[m] == nil && !m.HasFailed && !m.FailsBefore {
				going = append(going, m)
			}
		}
		if wrong := whatIsWrong(o, members, going, source); wrong != "" {
			t.Errorf("canary %t, %v: for %s %s", always, places, source, wrong)
		}
	}
}

// whatIsWrong says why those that go for a source should not, and is empty if they may.
func whatIsWrong(o *Order, members, going []*Member, source events.Source) string {
	isTried, isProven, first := false, false, 0
	for _, other := range members {
		has := other.hasChange(source.String(), orderChange(source)) && !other.HasFailed
		_, owes := other.Owes[source]
		isTried = isTried || has && other.IsRolling || owes && other.HasFailed && other.CanGoFirst
		isProven = isProven || has && other.IsReady
		for _, m := range going {
			if other.Wave < m.Wave && other.isUnfinished(source, owes) {
				return m.Key.Name + " goes before " + other.Key.Name
			}
			if other.HasFailed && source == orderDB {
				return m.Key.Name + " goes although " + other.Key.Name + " has failed"
			}
		}
	}
	for _, m := range going {
		if m.Tries && (m.IsReady || m.IsRolling) && m.CanGoFirst {
			first++
		}
	}
	isSuspect := source == orderDB && len(o.Suspecting) > 0
	if (o.Always || isSuspect) && !isProven && (first > 1 || isTried && first > 0) {
		return "more than one goes first"
	}
	return ""
}

// The name of the source is long, so that each comparison with one that has failed allocates its text.
func TestFewAreComparedWithAllThatHaveFailed(t *testing.T) {
	const many = 100
	source := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: strings.Repeat("long-", 20)}
	var members []*Member
	o := &Order{Always: true, Readers: func(events.Source) []*Member { return members }}
	for i := range many {
		m, failed := debtorOf(source), having(orderDB).but(fails)
		m.Key = workload.Key{Kind: "deployment", Namespace: "shop", Name: fmt.Sprintf("web-%02d", i)}
		members, o.Suspecting = append(members, &m), append(o.Suspecting, &failed)
	}
	allocations := testing.AllocsPerRun(5, func() {
		o.standings = make(map[sourceChange]*standing)
		o.standing(source, orderChange(source))
	})
	if allocations > 10*many {
		t.Errorf("%.0f allocations, want no more than for a few of %d workloads", allocations, many)
	}
}

func TestWhoHasALaterChangeOfASourceHasTheEarlierOne(t *testing.T) {
	change := func(version, uid string) workload.RolledFor {
		return workload.RolledFor{Fingerprint: "k:1", Version: version, UID: uid}
	}
	for name, tt := range map[string]struct {
		last workload.RolledFor
		want bool
	}{
		"the same":               {change("20", "a"), true},
		"a later one":            {change("30", "a"), true},
		"an earlier one":         {change("9", "a"), false},
		"of another object":      {change("30", "b"), false},
		"none":                   {workload.RolledFor{}, false},
		"it is still to have it": {workload.Owed(change("30", "a")), false},
		"of other keys":          {workload.RolledFor{Fingerprint: "k:1", Version: "30", UID: "a", Scope: "other"}, false},
		"of all keys":            {workload.RolledFor{Fingerprint: "k:1", Version: "30", UID: "a", Scope: "*"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Member{Has: map[string]workload.RolledFor{"secret/db": tt.last}}
			if got := m.hasChange("secret/db", change("20", "a")); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// TestAWorkloadThatHasMovedToAHigherWaveDoesNotWaitForItself has a snapshot from before the move, with which others were compared.
func TestAWorkloadThatHasMovedToAHigherWaveDoesNotWaitForItself(t *testing.T) {
	before := debtorOf(orderDB)
	o := orderOf(false, []*Member{&before})
	if why, _ := o.Wait(&before); why != None {
		t.Fatalf("it waits for %v at first, want nobody", why)
	}
	now := before.but(func(m *Member) { m.Wave = 5 })
	if why, peer := o.Wait(&now); why != None {
		t.Errorf("it waits for %v, %v, want nobody", why, peer.Key)
	}
}
