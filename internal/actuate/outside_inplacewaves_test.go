//go:build !race

package actuate_test

import (
	"net/http"
	"testing"
	"time"
)

func TestWhoComesAfterAReloadInPlaceGoesOnceThePodsHaveAnswered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		wave   int
		canary bool
		held   string
	}{
		{"in a higher wave", 1, false, "worker held lower-wave"},
		{"after the canary", 0, true, "worker held canary-first"},
		{"after the canary, and in a higher wave", 1, true, "worker held canary-first"},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.Canary = tt.canary
			pods := s.askPods()
			pods.of("web")
			pods.answer("web", http.StatusInternalServerError)
			s.workload("worker", auto, inWave(tt.wave), mountsSecret("db"))
			s.begin("secret/db")
			s.set("secret/db", "password", "two")
			s.pass(s.options.ReloadDelay + 5*time.Second)
			s.wantRolls() // The pods are asked to reload.
			s.wantTold("web held files-pending", tt.held)
			pods.answer("web", http.StatusOK)
			s.pass(5 * time.Second)
			s.wantRolls("worker")
			s.wantTold("web completed reloaded-in-place", "worker started content-changed", "worker completed rolled-out")
		})
	}
}
