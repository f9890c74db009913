//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// A patch may take as long as its timeout, so taking turns at free workers is not enough.
func TestANamespaceHasItsShareOfTheWorkers(t *testing.T) {
	tests := []struct {
		name       string
		namespaces []string
		workers    int
		want       int
	}{
		{name: "alone it takes half", workers: 10, want: 5},
		{name: "it takes the only one", workers: 1, want: 1},
		{name: "it takes all where no other is watched", namespaces: []string{namespace}, workers: 10, want: 10},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.PatchWorkers, s.options.Namespaces = tt.workers, tt.namespaces
			crowd := makeCrowd(s, namespace, 12)
			s.start()
			s.pass(time.Minute)
			for _, name := range crowd {
				s.patchesTake(name, 10*time.Second)
			}
			s.lastClient().ClearActions()
			s.set("shop/secret/crowd", "password", "two")
			s.settle()
			if got := len(s.requests("patch", "deployments")); got != tt.want {
				s.Errorf("%d patches are under way, want %d", got, tt.want)
			}
		})
	}
}
