package main

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// made has the fleet, the changes and the rounds that a seed generates.
type made struct {
	Fleet   []reader
	Changes []change
	Rounds  []round
}

func makeAll(seed uint64) made {
	f := newFleet(seeded(seed), 40)
	m := made{Fleet: f.readers()}
	changes := newChanges(seeded(seed), f)
	rounds := &rounds{random: seeded(seed), kinds: kindsFor(1), pace: 1}
	for range 300 {
		m.Changes = append(m.Changes, changes.next())
		m.Rounds = append(m.Rounds, rounds.next())
	}
	return m
}

var unexported = cmp.AllowUnexported(reader{}, change{}, source{}, member{}, round{}, fault{})

func TestASeedMakesTheSameRun(t *testing.T) {
	if diff := cmp.Diff(makeAll(1), makeAll(1), unexported); diff != "" {
		t.Errorf("two runs of one seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(makeAll(1), makeAll(2), unexported) {
		t.Error("two seeds make one run")
	}
}

func TestTheFleetHasEveryKindOfWorkloadAndOfReader(t *testing.T) {
	f := newFleet(seeded(1), 40)
	kinds, readers := make(map[string]int), make(map[string]int)
	for _, m := range f.members {
		kinds[m.kind]++
		for _, s := range m.sources {
			readers[s.kind+map[bool]string{true: ", whole", false: ", some keys"}[m.keys[s] == nil]]++
		}
	}
	if diff := cmp.Diff(map[string]int{"deployment": 32, "statefulset": 4, "daemonset": 4}, kinds); diff != "" {
		t.Errorf("kinds of workloads (-want +got):\n%s", diff)
	}
	if len(readers) != 4 {
		t.Errorf("readers of %v, want each of Secrets and ConfigMaps, whole and some keys", readers)
	}
}

func TestChangesAreOfEveryKind(t *testing.T) {
	f := newFleet(seeded(1), 40)
	changes := newChanges(seeded(1), f)
	got := make(map[string]bool)
	current := make(map[source]map[string]string)
	for _, s := range f.sources {
		current[s] = make(map[string]string)
	}
	older := make(map[string]bool)
	for range 1000 {
		c := changes.next()
		switch {
		case c.edited != nil:
			got["edited"] = true
		case c.set == nil:
			got["touched"] = true
		case len(c.set) == 1:
			got["one key"] = true
		case len(c.set) == len(keys):
			got["all keys"] = true
		default:
			got["several keys"] = true
		}
		for key, value := range c.set {
			if older[c.source.name+key+value] {
				got["back"] = true
			}
			older[c.source.name+key+current[c.source][key]] = true
			current[c.source][key] = value
		}
	}
	if len(got) != 6 {
		t.Errorf("changes are %v, want of six kinds", got)
	}
}

func TestRounds(t *testing.T) {
	kinds := kindsFor(1)
	r := &rounds{random: seeded(1), kinds: kinds, pace: 1}
	times := make(map[kind]int)
	sizes := make(map[int]bool)
	longCalms := 0
	for range 200 {
		next := r.next()
		sizes[len(next.faults)] = true
		taken := make(map[target]bool)
		for _, f := range next.faults {
			if taken[targets[f.kind]] || targets[f.kind] == "" {
				t.Errorf("round %s has two faults of the target %q", next, targets[f.kind])
			}
			taken[targets[f.kind]] = true
			times[f.kind]++
		}
		if next.calm > recovery {
			longCalms++
		}
	}
	least, most := times[kinds[0]], times[kinds[0]]
	for _, k := range kinds {
		least, most = min(least, times[k]), max(most, times[k])
	}
	if least < 10 || most-least > 1 {
		t.Errorf("the kinds come %v times, want all of them as often", times)
	}
	if !sizes[1] || !sizes[2] || !sizes[3] || longCalms != 40 {
		t.Errorf("rounds of %v faults, with %d long calms of 200, want 40", sizes, longCalms)
	}
}

func TestRoundsOfOneKind(t *testing.T) {
	r := &rounds{random: seeded(1), kinds: []kind{etcdKill}, pace: 0.1}
	for range 20 {
		if next := r.next(); len(next.faults) != 1 || next.faults[0].kind != etcdKill {
			t.Errorf("round %s, want one fault", next)
		}
	}
}
