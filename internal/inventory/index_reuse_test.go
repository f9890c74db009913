package inventory

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// membersOf returns links as sets.
func membersOf[By comparable](l links[By]) map[By]map[workload.Key]bool {
	all := make(map[By]map[workload.Key]bool, len(l))
	for by := range l {
		all[by] = make(map[workload.Key]bool)
		for key := range l[by].all() {
			all[by][key] = true
		}
	}
	return all
}

// compare compares the two indexes, the links of the first with those that are made from nothing, and its dependents with asking every workload.
func (w *world) compare(where string) {
	w.Helper()
	reuses, full := w.both[0], w.both[1]
	for key := range full.index.workloads {
		if got, want := reuses.index.workloads[key], full.index.workloads[key]; !reflect.DeepEqual(got, want) {
			w.Fatalf("%s: %v is\n%+v, want\n%+v", where, key, got, want)
		}
	}
	if got, want := len(reuses.index.workloads), len(full.index.workloads); got != want {
		w.Fatalf("%s: there are %d workloads, want %d", where, got, want)
	}
	if !slices.Equal(reuses.told, full.told) {
		w.Fatalf("%s: it tells of\n%v, want\n%v", where, reuses.told, full.told)
	}
	reuses.told, full.told = nil, nil
	a, b := events.Source{Kind: db.Kind, Namespace: "shop", Name: "a"}, events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "b"}
	for _, source := range []events.Source{db, a, b} {
		found := reuses.index.Dependents(source)
		for i, one := range found {
			if slices.Contains(found[:i], one) {
				w.Fatalf("%s: %v is a dependent of %s twice", where, one.ID, source)
			}
		}
		for key, known := range reuses.index.workloads {
			if known.OptIn.Wants(source, known.Reference(source), true).Wanted() && !slices.Contains(found, known) {
				w.Fatalf("%s: %v wants %s, and is no dependent of it", where, key, source)
			}
		}
	}
	x, scratch := reuses.index, newIndex(Options{})
	for _, known := range x.workloads {
		scratch.add(known)
	}
	if !reflect.DeepEqual(membersOf(x.waves), membersOf(scratch.waves)) ||
		!reflect.DeepEqual(membersOf(x.bySource), membersOf(scratch.bySource)) || !reflect.DeepEqual(membersOf(x.byPattern), membersOf(scratch.byPattern)) ||
		!reflect.DeepEqual(membersOf(x.runners), membersOf(scratch.runners)) {
		w.Fatalf("%s: the links are\n%v, want\n%v", where, x, scratch)
	}
}

func TestAnIndexThatReusesWhatItHasReadIsAsIfItHadReadEverything(t *testing.T) {
	kinds, reading := targetsOf(t)
	reading.Stores = everyStore
	asReloader := reading
	asReloader.Reloader, asReloader.All, asReloader.InPlace = true, true, true
	for name, reading := range map[string]workload.Reading{"by Keyturn's annotations": reading, "by Reloader's": asReloader} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				w := newWorld(t, seed, kinds, reading)
				for i := range 200 {
					w.step()
					w.compare(fmt.Sprintf("seed %d, step %d", seed, i))
				}
			}
		})
	}
}
