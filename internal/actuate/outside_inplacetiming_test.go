//go:build !race

package actuate_test

import (
	"net/http"
	"testing"
	"time"
)

func TestTheDelayOfAReloadIsNoTimeThatAChangeTook(t *testing.T) {
	for name, tt := range map[string]struct {
		answer   int
		rollouts uint64
	}{
		"pods that reload":     {http.StatusOK, 0},
		"pods that are rolled": {http.StatusInternalServerError, 1},
	} {
		playOf(t, name, func(s *scene) {
			pods, seen := s.askPods(), s.instrument()
			pods.of("web")
			pods.answer("web", tt.answer)
			s.begin("secret/db")
			s.set("secret/db", "password", "two")
			s.pass(s.options.ReloadDelay + time.Minute)
			// The attempts to reach the pods take 15 seconds. Whether pods have reloaded, nobody has seen.
			for _, histogram := range []string{"keyturn.change.patch.duration", "keyturn.change.ready.duration"} {
				if count, sum := seen.spent(histogram); count != tt.rollouts || sum > 30 {
					s.Errorf("%s: %d times took %v s, want %d, of at most 30 s", histogram, count, sum, tt.rollouts)
				}
			}
		})
	}
}
