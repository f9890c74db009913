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

func TestEveryKindOfFaultComesAsOftenAndATargetHasOneAtATime(t *testing.T) {
	times, sizes := make(map[kind]int), make(map[int]bool)
	for _, next := range makeAll(1).Rounds {
		sizes[len(next.faults)] = true
		taken := make(map[target]bool)
		for _, f := range next.faults {
			if taken[targets[f.kind]] || targets[f.kind] == "" {
				t.Errorf("round %s has two faults of the target %q", next, targets[f.kind])
			}
			taken[targets[f.kind]] = true
			times[f.kind]++
		}
	}
	for _, k := range kindsFor(1) {
		if d := times[k] - times[watcherKill]; d < -1 || d > 1 {
			t.Errorf("the kinds come %v times, want all of them as often", times)
		}
	}
	if !sizes[1] || !sizes[2] || !sizes[3] {
		t.Errorf("rounds of %v faults, want one to three", sizes)
	}
}
