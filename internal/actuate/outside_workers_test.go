//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// patchesSent counts the patches of a namespace that the newest actuator has sent since the list of its requests was cleared.
func patchesSent(s *scene, of string) int {
	n := 0
	for _, action := range s.lastClient().Actions() {
		if action.GetVerb() == "patch" && action.GetNamespace() == of {
			n++
		}
	}
	return n
}

// A patch may take as long as its timeout, so taking turns at free workers is not enough.
func TestTheSlowPatchesOfOneNamespaceLeaveWorkersToAnother(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		crowd := makeCrowd(s, "bank", 30)
		s.begin("secret/db")
		for _, name := range crowd {
			s.patchesTake(name, 10*time.Second)
		}
		s.lastClient().ClearActions()
		s.set("bank/secret/crowd", "password", "two")
		s.settle()
		s.wantRolls()
		if n := patchesSent(s, "bank"); n != 8 {
			s.Errorf("%d patches of the crowd are under way, want 8 of 16", n)
		}
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantRolls("web")
	})
}

func TestANamespaceHasItsShareOfTheWorkers(t *testing.T) {
	tests := []struct {
		name       string
		namespaces []string
		workers    int
		// shop and bank are how many workloads of each have a change, all at the same time, and wantShop and wantBank how many are being patched.
		shop, bank, wantShop, wantBank int
	}{
		{name: "alone it takes half", workers: 10, shop: 12, wantShop: 5},
		{name: "of two each takes a third", workers: 9, shop: 12, bank: 12, wantShop: 3, wantBank: 3},
		{name: "one that needs no more leaves the rest to the other", workers: 10, shop: 12, bank: 1, wantShop: 5, wantBank: 1},
		{name: "it takes the only one", workers: 1, shop: 12, wantShop: 1},
		{name: "it takes all where no other is watched", namespaces: []string{namespace}, workers: 10, shop: 12, wantShop: 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.options.PatchWorkers, s.options.Namespaces = tt.workers, tt.namespaces
				crowds := append(makeCrowd(s, namespace, tt.shop), makeCrowd(s, "bank", tt.bank)...)
				s.start()
				s.pass(time.Minute)
				for _, name := range crowds {
					s.patchesTake(name, 10*time.Second)
				}
				s.lastClient().ClearActions()
				s.set("shop/secret/crowd", "password", "two")
				if tt.bank > 0 {
					s.set("bank/secret/crowd", "password", "two")
				}
				s.settle()
				if shop, bank := patchesSent(s, namespace), patchesSent(s, "bank"); shop != tt.wantShop || bank != tt.wantBank {
					s.Errorf("%d and %d patches are under way, want %d and %d", shop, bank, tt.wantShop, tt.wantBank)
				}
			})
		})
	}
}
