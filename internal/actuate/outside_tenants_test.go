//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
	tests := []struct {
		name string
		// wave is that of the other workload, which is put in the way. The third one, of the same namespace, is on hold before.
		wave int
		way  func(s *scene, other, third string)
		want string
	}{
		{
			name: "by a lower wave", wave: -1000, want: "held lower-wave",
			way: func(s *scene, other, _ string) {
				s.refuse(other, errors.New("no"))
				rotate(s)
			},
		},
		{
			name: "by a rollout that failed for the same change", want: "held peer-failed",
			way: func(s *scene, other, _ string) {
				s.stall(other)
				rotate(s)
				s.wantRolls(other)
				s.fail(other)
			},
		},
		{
			name: "by going first after one that was repaired", want: "held canary-first",
			way: func(s *scene, other, third string) {
				s.edit(third, letGo)
				s.edit(other, onHold)
				s.stall(third, other)
				rotate(s)
				s.wantRolls(third)
				s.fail(third)
				s.settle()
				s.repair(third)
				s.settle()
				s.edit(other, letGo)
				s.settle()
				s.wantRolls(other)
			},
		},
	}
	for _, tt := range tests {
		for _, of := range []string{namespace, "bank"} {
			playOf(t, tt.name+", in "+of, func(s *scene) {
				shared := on("openbao:secret/shared")
				s.workload("web", shared, onHold)
				s.workload(nameIn(of, "other"), shared, inWave(tt.wave))
				s.workload(nameIn(of, "third"), shared, onHold)
				s.startFor(time.Minute)
				tt.way(s, nameIn(of, "other"), nameIn(of, "third"))
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

func TestARequirementToGoFirstEndsThatOfItsOwnNamespaceOnly(t *testing.T) {
	play(t, func(s *scene) {
		both := []string{namespace, "bank"}
		for _, of := range both {
			s.workload(nameIn(of, "repaired"), auto, reads("secret/db"))
			s.workload(nameIn(of, "first"), auto, reads("secret/db"), onHold)
			s.workload(nameIn(of, "second"), auto, reads("secret/db"), onHold)
			s.observe(of + "/secret/db")
		}
		s.startFor(time.Minute)
		for _, of := range both {
			s.stall(nameIn(of, "repaired"))
			s.stall(nameIn(of, "first"))
			s.set(of+"/secret/db", "password", "two")
		}
		s.settle()
		s.wantRolls("repaired", "bank/repaired")
		for _, of := range both {
			s.fail(nameIn(of, "repaired"))
			s.settle()
			s.repair(nameIn(of, "repaired"))
			s.settle()
		}
		for _, name := range []string{"first", "second"} {
			for _, of := range both {
				s.edit(nameIn(of, name), letGo)
			}
			s.settle()
		}
		s.wantRolls("first", "bank/first")
		for _, of := range both {
			s.wantLast(nameIn(of, "second"), "held canary-first", "deployment/first")
		}
	})
}

// Of a namespace, one patch is sent at a time here, and the first one takes five seconds.
func TestAWorkloadThatIsDueKeepsItsTurnWhenAnotherChangeComes(t *testing.T) {
	play(t, func(s *scene) {
		s.options.PatchWorkers = 2
		for _, name := range []string{"first", "second", "third"} {
			s.workload(name, auto, reads("secret/"+name))
			s.observe("secret/" + name)
		}
		s.startFor(time.Minute)
		s.patchesTake("first", 5*time.Second)
		s.lineUp("first", "second", "third")
		s.pass(2 * time.Second)
		s.set("secret/second", "password", "last")
		s.pass(10 * time.Second)
		if diff := cmp.Diff([]string{"first", "second", "third"}, s.whoRolled()); diff != "" {
			s.Errorf("rolled, in this order (-want +got):\n%s", diff)
		}
		s.wantRolledForLast("second", "secret/second")
	})
}

// It makes no difference how often those that wait are looked at meanwhile.
func TestSlotsGoToTheNamespacesInTurn(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollouts, s.options.RolloutTimeout = 1, 24*time.Hour
		busy := makeCrowd(s, "z", 1)[0]
		s.stall(busy)
		namespaces := []string{"a", "b", "c"}
		for _, of := range namespaces {
			s.stall(makeCrowd(s, of, 2)...)
		}
		s.startFor(time.Minute)
		s.settled("z/secret/crowd", "password", "two")
		s.wantRolls(busy)
		for _, of := range namespaces {
			s.set(of+"/secret/crowd", "password", "two")
			s.pass(10 * time.Millisecond)
		}
		s.pass(time.Minute)
		s.wantRolls()
		var order []string
		for range 6 {
			s.finish(busy)
			s.pass(6 * time.Second)
			rolled := s.whoRolled()
			if len(rolled) != 1 {
				s.Fatalf("after the end of %s, %v are rolled, want one", busy, rolled)
			}
			busy = rolled[0]
			order = append(order, parse(busy).namespace)
		}
		if diff := cmp.Diff([]string{"a", "b", "c", "a", "b", "c"}, order); diff != "" {
			s.Errorf("the namespaces got slots in this order (-want +got):\n%s", diff)
		}
	})
}

// A patch may take as long as its timeout, so taking turns at free workers is not enough.
func TestANamespaceHasItsShareOfTheWorkers(t *testing.T) {
	tests := []struct {
		name          string
		namespaces    []string
		workers, want int
	}{
		{name: "alone it takes half", workers: 10, want: 5},
		{name: "it takes the only one", workers: 1, want: 1},
		{name: "it takes all where no other is watched", namespaces: []string{namespace}, workers: 10, want: 10},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.PatchWorkers, s.options.Namespaces = tt.workers, tt.namespaces
			crowd := makeCrowd(s, namespace, 12)
			s.startFor(time.Minute)
			for _, name := range crowd {
				s.patchesTake(name, 10*time.Second)
			}
			s.lastClient().ClearActions()
			s.settled("shop/secret/crowd", "password", "two")
			if got := len(s.requests("patch", "deployments")); got != tt.want {
				s.Errorf("%d patches are under way, want %d", got, tt.want)
			}
		})
	}
}
