//go:build !race

package actuate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
)

func TestAWorkloadWaitsForAPeerThatFailed(t *testing.T) {
	for _, tt := range []struct {
		name string
		// reads is what the peer reads, by default what web reads. It fails when that has changed.
		reads string
		// then happens before web is on hold no more. The peer is on hold from then on.
		then  func(s *scene)
		waits bool
	}{
		{name: "that was rolled for the same change", waits: true},
		{name: "also when an event about another key came since", waits: true, then: func(s *scene) { s.set("secret/db", "user", "other") }},
		{name: "but not when the content has changed since: that may mend it", then: func(s *scene) { s.set("secret/db", "password", "three") }},
		{name: "but not when it was rolled for another source of this name", then: func(s *scene) {
			s.erase("secret/db")
			s.pass(time.Minute)
			s.set("secret/db", "password", "three")
		}},
		{name: "but not when it was never rolled for the source", reads: "secret/other", then: func(s *scene) { s.set("secret/db", "password", "two") }},
	} {
		playOf(t, tt.name, func(s *scene) {
			source, key := "secret/db", "#password"
			if tt.reads != "" {
				source = tt.reads
			}
			s.workload("peer", auto, reads(source+key))
			s.workload("web", auto, onHold, reads("secret/db"+key))
			s.begin("secret/db", "secret/other")
			s.stall("peer")
			s.settled(source, "password", "two")
			s.fail("peer")
			s.pass(time.Minute)
			s.wantRolls("peer")
			s.edit("peer", onHold)
			if tt.then != nil {
				tt.then(s)
			}
			s.pass(time.Minute)
			s.wantRolls()
			s.edit("web", letGo)
			s.pass(time.Minute)
			if tt.waits {
				s.wantRolls()
				s.wantAmongTold("web held peer-failed")
			} else {
				s.wantRolls("web")
			}
		})
	}
}

// timedOut has the rollout of a workload time out. A workload of a higher wave waits for it.
func timedOut(s *scene) *running {
	s.Helper()
	s.workload("a", auto, reads("secret/db"))
	s.workload("b", auto, inWave(1), reads("secret/db"))
	r := s.begin("secret/db")
	s.stall("a")
	s.rotate("two", "a")
	s.wantTold("a started content-changed", "b held lower-wave")
	s.pass(s.options.RolloutTimeout + 15*time.Second)
	s.wantRolls()
	s.wantTold("a failed timed-out", "b held peer-failed")
	return r
}

func TestARolloutThatTimedOutHoldsItsPeers(t *testing.T) {
	for _, tt := range []struct {
		name string
		then func(s *scene)
	}{
		{"until it is complete after all", func(s *scene) { s.finish("a") }},
		{"until it is rolled again", func(s *scene) { s.repair("a") }},
	} {
		playOf(t, tt.name, func(s *scene) {
			seen := s.instrument()
			timedOut(s)
			seen.want("keyturn.rollouts.failing", "", "", 1)
			tt.then(s)
			s.pass(time.Hour)
			seen.want("keyturn.rollouts.failing", "", "", 0)
			s.wantRolls("b")
		})
	}
}

// repairs are what people do about a workload whose rollout has failed. Undo puts it back as it was before.
var repairs = []struct {
	name string
	mend func(s *scene, failed string, undo func())
	// isRolled says that the one that failed is rolled again.
	isRolled bool
}{
	{"by hand", func(s *scene, failed string, _ func()) { s.repair(failed) }, false},
	{"by an undo", func(_ *scene, _ string, undo func()) { undo() }, false},
	{"by a new value", func(s *scene, failed string, _ func()) {
		s.loosen(failed)
		s.set("secret/db", "password", "three")
	}, true},
}

func TestOfTenOneGoesNextHoweverTheFirstIsRepaired(t *testing.T) {
	for name, options := range map[string]func(*actuate.Options){
		"with a canary": func(o *actuate.Options) { o.Canary = 5 * time.Minute },
		"one at a time": func(o *actuate.Options) { o.MaxRollouts = 1 },
	} {
		for leader, leads := range map[string]func(*scene){
			"the same leader": func(*scene) {},
			"the next leader": func(s *scene) { s.restart() },
		} {
			for _, repair := range repairs {
				playOf(t, name+", "+repair.name+", "+leader, func(s *scene) {
					options(&s.options)
					left, undo := tenOfWhichOneFails(s)
					leads(s)
					s.pass(10 * time.Second)
					s.wantRolls()
					failed := left[0]
					repair.mend(s, failed, undo)
					if !repair.isRolled {
						left, failed = left[1:], ""
					}
					s.pass(10 * time.Second)
					wantNext(s, left, failed)
				})
			}
		}
	}
}

// tenOfWhichOneFails makes ten workloads of one Secret, has it change, and one of them fail, and wants the others to wait and to be told. It returns
// all, that one first, and what undoes its roll. The rollouts of the others do not end by themselves.
func tenOfWhichOneFails(s *scene) (names []string, undo func()) {
	s.Helper()
	for i := range 10 {
		names = append(names, fmt.Sprintf("web-%d", i))
		s.workload(names[i], auto, reads("secret/db"))
	}
	s.begin("secret/db")
	undos := make(map[string]func())
	for _, name := range names {
		undos[name] = s.revisionOf(name)
		s.stall(name)
	}
	s.settled("secret/db", "password", "two")
	first := s.whoRolled()
	if len(first) != 1 || s.options.Canary > 0 && first[0] != names[0] {
		s.Fatalf("first, %q are rolled", first)
	}
	failed := first[0]
	s.fail(failed)
	s.pass(10 * time.Second)
	s.wantRolls()
	told, all := []string{failed + " failed deadline-exceeded"}, []string{failed}
	for _, name := range names {
		if name != failed {
			told, all = append(told, name+" held peer-failed"), append(all, name)
		}
	}
	s.wantAmongTold(told...)
	return all, undos[failed]
}

// wantNext wants one of those that are left to have been rolled, and with --canary the first of them, and the others to be when its pods are ready.
// The one that failed, if it is rolled again, waits for nobody: it is the canary, and without --canary it may go with another one.
func wantNext(s *scene, left []string, failed string) {
	s.Helper()
	next := s.whoRolled()
	ones := slices.DeleteFunc(slices.Clone(next), func(name string) bool { return name == failed })
	if len(next) == 0 || len(ones) > 1 || s.options.Canary > 0 && !slices.Contains(next, left[0]) {
		s.Errorf("next, %q are rolled", next)
	}
	for _, name := range left {
		s.loosen(name)
	}
	for _, name := range ones {
		s.finish(name)
	}
	if s.options.Canary > 0 {
		s.pass(bakeTime - time.Minute)
		s.wantRolls()
	}
	s.pass(time.Minute + bakeCheck)
	s.wantRolls(slices.DeleteFunc(left, func(name string) bool { return slices.Contains(next, name) })...)
	s.pass(time.Hour)
	s.wantRolls()
}

// nameIn returns the name of a workload of a namespace.
func nameIn(of, name string) string {
	if of == namespace {
		return name
	}
	return of + "/" + name
}

// All workloads read one secret in a store, so that any of them could wait for any other.
func TestNoWorkloadOfAnotherNamespaceHoldsOne(t *testing.T) {
	rotate := func(s *scene) {
		s.rotateInStore("demo", "secret/shared", 1)
		s.settle()
	}
	for _, tt := range []struct {
		name string
		// wave is that of the other workload, which is put in the way.
		wave int
		way  func(s *scene, other string)
		want string
	}{
		{name: "by a lower wave", wave: -1000, want: "held lower-wave", way: func(s *scene, other string) {
			s.refuse(other, errors.New("no"))
			rotate(s)
		}},
		{name: "by a rollout that failed for the same change", want: "held peer-failed", way: func(s *scene, other string) {
			s.stall(other)
			rotate(s)
			s.wantRolls(other)
			s.fail(other)
		}},
	} {
		for _, of := range []string{namespace, "bank"} {
			playOf(t, tt.name+", in "+of, func(s *scene) {
				shared := on("openbao:secret/shared")
				s.workload("web", shared, onHold)
				s.workload(nameIn(of, "other"), shared, inWave(tt.wave))
				s.startFor(time.Minute)
				tt.way(s, nameIn(of, "other"))
				s.settle()
				s.wantRolls()
				s.edit("web", letGo)
				s.settle()
				if of != namespace {
					s.wantRolls("web")
					return
				}
				s.wantRolls()
				s.wantLast("web", tt.want, "deployment/other")
			})
		}
	}
}
