package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// kind is a kind of fault.
type kind string

// The kinds of faults.
const (
	watcherKill   kind = "watcher-kill"
	watcherStop   kind = "watcher-stop"
	actuatorKill  kind = "actuator-kill"
	actuatorStop  kind = "actuator-stop"
	storeRollback kind = "store-rollback"
	storeEmpty    kind = "store-empty"
	storeDelete   kind = "store-delete"
	apiServerKill kind = "apiserver-kill"
	apiServerStop kind = "apiserver-stop"
	etcdKill      kind = "etcd-kill"
	etcdStop      kind = "etcd-stop"
	linkCut       kind = "link-cut"
	linkMute      kind = "link-mute"
)

// target is what a fault affects. A target has only one fault at a time.
type target string

var targets = map[kind]target{
	watcherKill: "watcher", watcherStop: "watcher",
	actuatorKill: "actuator", actuatorStop: "actuator", storeRollback: "actuator", storeEmpty: "actuator", storeDelete: "actuator",
	apiServerKill: "control plane", apiServerStop: "control plane", etcdKill: "control plane", etcdStop: "control plane",
	linkCut: "link", linkMute: "link",
}

// kindsFor returns the kinds of faults for a number of actuators, in their order. A replica of a stream must not be rolled back, because
// the others rely on what it has acknowledged.
func kindsFor(actuators int) []kind {
	all := []kind{
		watcherKill, watcherStop, actuatorKill, actuatorStop, storeRollback, storeEmpty, storeDelete,
		apiServerKill, apiServerStop, etcdKill, etcdStop, linkCut, linkMute,
	}
	if actuators > 1 {
		all = slices.DeleteFunc(all, func(k kind) bool { return k == storeRollback })
	}
	return all
}

// parseKinds reads a list of kinds.
func parseKinds(text string, actuators int) ([]kind, error) {
	possible := kindsFor(actuators)
	if text == "" {
		return possible, nil
	}
	var kinds []kind
	for name := range strings.SplitSeq(text, ",") {
		k := kind(strings.TrimSpace(name))
		if !slices.Contains(possible, k) {
			return nil, fmt.Errorf("-faults: %q is none with %d actuators, want some of %q", k, actuators, possible)
		}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

// fault is a planned fault.
type fault struct {
	kind kind
	// after is the time from the start of the round to that of the fault, and hold how long the fault lasts.
	after, hold time.Duration
	// pick chooses among several programs or links.
	pick int
}

// round has up to three overlapping faults of different targets, followed by a calm.
type round struct {
	faults []fault
	calm   time.Duration
}

// String describes the round for people.
func (r round) String() string {
	var parts []string
	for _, f := range r.faults {
		parts = append(parts, fmt.Sprintf("%s after %.1fs for %.1fs", f.kind, f.after.Seconds(), f.hold.Seconds()))
	}
	return fmt.Sprintf("%s, then a calm of %.1fs", strings.Join(parts, ", "), r.calm.Seconds())
}

// inflicted is a fault that has been inflicted.
type inflicted struct {
	kind kind
	// from is when it began, and to is when everything was ready again.
	from, to time.Time
	what     string
}

// rounds generates the faults. The same seed gives the same faults. A pace of less than 1 makes everything shorter.
type rounds struct {
	random *rand.Rand
	kinds  []kind
	pace   float64
	made   int
	// left are the kinds that have not been chosen since all kinds were chosen the last time.
	left []kind
}

// next generates a round. Of ten rounds, six have one fault, three have two, and one has three. Every fifth calm is longer than the recovery
// from a fault.
func (r *rounds) next() round {
	r.made++
	var next round
	n := []int{1, 1, 1, 1, 1, 1, 2, 2, 2, 3}[r.random.IntN(10)]
	taken := make(map[target]bool)
	for range n {
		k, found := r.choose(taken)
		if !found {
			break
		}
		taken[targets[k]] = true
		f := fault{kind: k, hold: r.between(time.Second, 20*time.Second), pick: r.random.IntN(1 << 20)}
		if len(next.faults) > 0 {
			f.after = r.between(0, 5*time.Second)
		}
		next.faults = append(next.faults, f)
	}
	next.calm = r.between(5*time.Second, 25*time.Second)
	if r.made%5 == 0 {
		next.calm = r.between(recovery+15*time.Second, recovery+30*time.Second)
	}
	return next
}

// choose takes one of the remaining kinds whose target is free. Every kind is chosen once before any is chosen again.
func (r *rounds) choose(taken map[target]bool) (kind, bool) {
	if len(r.left) == 0 {
		r.left = slices.Clone(r.kinds)
	}
	free := slices.DeleteFunc(slices.Clone(r.left), func(k kind) bool { return taken[targets[k]] })
	if len(free) == 0 {
		return "", false
	}
	k := free[r.random.IntN(len(free))]
	r.left = slices.DeleteFunc(r.left, func(other kind) bool { return other == k })
	return k, true
}

func (r *rounds) between(least, most time.Duration) time.Duration {
	d := least + time.Duration(r.random.Int64N(int64(most-least)))
	return time.Duration(float64(d) * r.pace)
}
