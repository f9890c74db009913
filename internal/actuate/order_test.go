//go:build !race

package actuate

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
	db        = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	app       = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	dbChange  = workload.RolledFor{Fingerprint: "k:2", Version: "20", UID: "db"}
	appChange = workload.RolledFor{Fingerprint: "k:2", Version: "30", UID: "app"}
)

// debtor returns a workload that is to be rolled for changes of sources, and goes as soon as others let it.
func debtor(sources ...events.Source) member {
	m := member{pods: 1, goes: true, tries: true, isReady: true, canGoFirst: true, owes: make(map[events.Source]workload.RolledFor)}
	for _, source := range sources {
		m.owes[source] = changeOf(source)
	}
	return m
}

func changeOf(source events.Source) workload.RolledFor {
	if source == db {
		return dbChange
	}
	return appChange
}

// having returns a workload that was rolled for changes of sources, and is ready.
func having(sources ...events.Source) member {
	m := member{pods: 1, tries: true, isReady: true, has: make(map[string]workload.RolledFor)}
	for _, source := range sources {
		m.has[source.String()] = changeOf(source)
	}
	return m
}

// but returns a workload that is different.
func (m member) but(how func(*member)) member {
	how(&m)
	return m
}

// conditions are what the workloads of a namespace may be in.
var conditions = map[string]member{
	"owes db":                        debtor(db),
	"owes app":                       debtor(app),
	"owes both":                      debtor(db, app),
	"owes both, and has more pods":   debtor(db, app).but(func(m *member) { m.pods = 3 }),
	"owes both, and has no pods":     debtor(db, app).but(func(m *member) { m.pods, m.tries = 0, false }),
	"owes both, but was not patched": debtor(db, app).but(func(m *member) { m.canGoFirst = false }),
	"owes both, and is not ready":    debtor(db, app).but(func(m *member) { m.isReady = false }),
	"owes both, and failed before":   debtor(db, app).but(func(m *member) { m.isReady, m.failsBefore = false, true }),
	"owes both, but is on hold":      debtor(db, app).but(func(m *member) { m.goes, m.canGoFirst = false, false }),
	"is rolled for db, and owes app": debtor(app).but(func(m *member) {
		m.has, m.isReady, m.isRolling, m.isFollowed, m.rollsFor = having(db).has, false, true, true, []string{db.String()}
	}),
	"is rolled for db and waits for people": having(db).but(func(m *member) { m.isReady, m.isFollowed = false, true }),
	"has both":                              having(db, app),
	"has failed for db":                     having(db).but(fails),
	"has failed for db, and owes app":       debtor(app).but(func(m *member) { m.has = having(db).has }).but(fails),
	"has failed for db, and was undone":     {pods: 1, tries: true, isReady: true, suspects: having(db).has},
}

func fails(m *member) { m.isReady, m.hasFailed, m.suspects = false, true, having(db).has }

// names are those of the workloads.
var names = []string{"web-0", "web-1", "web-2", "web-3"}

// orderOf returns the order of workloads that all read both sources.
func orderOf(always bool, members []*member) *order {
	o := &order{always: always, readers: func(events.Source) []*member { return members }, standings: make(map[sourceChange]*standing)}
	for i, m := range members {
		m.key = workload.Key{Kind: "deployment", Namespace: "shop", Name: names[i]}
		if m.suspects != nil {
			o.suspecting = append(o.suspecting, m)
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
	most := len(names)
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
	var members []*member
	for _, p := range places {
		m := conditions[p.name]
		m.wave = p.wave
		members = append(members, &m)
	}
	o := orderOf(always, members)
	waits := make(map[*member]*member, len(members))
	for _, m := range members {
		_, waits[m] = o.wait(m)
	}
	for _, m := range members {
		last := waits[m]
		for range members { // A rollout ends by itself, whatever the workload waits for next.
			if last != nil && !last.isRolling && waits[last] != nil {
				last = waits[last]
			}
		}
		switch {
		case last == nil || last.isRolling || last.hasFailed:
		case waits[last] != nil:
			t.Errorf("canary %t, %v: %s waits in a circle", always, places, m.key.Name)
		case !last.goes || len(last.owes) == 0:
			t.Errorf("canary %t, %v: %s waits for %s, which does not go", always, places, m.key.Name, last.key.Name)
		}
	}
	for _, source := range []events.Source{db, app} {
		var going []*member
		for _, m := range members {
			if _, owes := m.owes[source]; owes && waits[m] == nil && !m.hasFailed && !m.failsBefore {
				going = append(going, m)
			}
		}
		if wrong := whatIsWrong(o, members, going, source); wrong != "" {
			t.Errorf("canary %t, %v: for %s %s", always, places, source, wrong)
		}
	}
}

// whatIsWrong says why those that go for a source should not, and is empty if they may.
func whatIsWrong(o *order, members, going []*member, source events.Source) string {
	isTried, isProven, first := false, false, 0
	for _, other := range members {
		has := other.hasChange(source.String(), changeOf(source)) && !other.hasFailed
		isTried = isTried || has && other.isRolling
		isProven = isProven || has && other.isReady
		for _, m := range going {
			if other.wave < m.wave && other.isUnfinished(source) {
				return m.key.Name + " goes before " + other.key.Name
			}
			if other.hasFailed && source == db {
				return m.key.Name + " goes although " + other.key.Name + " has failed"
			}
		}
	}
	for _, m := range going {
		if m.tries && (m.isReady || m.isRolling) && m.canGoFirst {
			first++
		}
	}
	isSuspect := source == db && len(o.suspecting) > 0
	if (o.always || isSuspect) && !isProven && (first > 1 || isTried && first > 0) {
		return "more than one goes first"
	}
	return ""
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
			m := &member{has: map[string]workload.RolledFor{"secret/db": tt.last}}
			if got := m.hasChange("secret/db", change("20", "a")); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
