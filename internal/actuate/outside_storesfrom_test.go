//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// The watcher of a hub reports a secret in a store, and a Secret of its own cluster that has the name of one here.
func TestAnActuatorActsOnWhatAnotherClusterSaysOfASecretStore(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", on("openbao:secret/shop/db"))
		s.workload("other", on("secret/db"), reads("secret/db"))
		s.observe("secret/db")
		hub, err := events.Open(s.Context(), s.nc, "hub", nil)
		if err != nil {
			s.Fatal(err)
		}
		s.options.StoresFrom = []string{"hub"}
		s.start()
		s.pass(time.Minute)
		natstest.Publish(s.T, func() error {
			foreign := s.of("secret/db").published
			foreign.Cluster, foreign.Verb, foreign.ResourceVersion = "hub", events.VerbChanged, s.nextVersion()
			foreign.ChangedAt = foreign.ResourceVersion
			_, foreign.Fingerprint = fingerprints(map[string]string{"password": "of the hub"})
			_, err := hub.PublishChange(s.Context(), foreign, 0)
			return err
		})
		s.pass(time.Minute)
		s.wantRolls()
		s.stall("web")
		s.rotateInStore("hub", "secret/shop/db", 7)
		s.settle()
		s.wantRolls("web")
		s.wantTold("web started content-changed")

		// The next leader finds what the rollout is for, so that it is measured.
		seen := s.instrument()
		s.restart()
		s.pass(time.Minute)
		s.finish("web")
		s.settle()
		s.wantTold("web completed rolled-out")
		if count, sum := seen.spent("keyturn.change.ready.duration"); count != 1 || sum < 61 || sum > 63 {
			s.Errorf("it was measured %d times, %g s together; want once, a good minute", count, sum)
		}
		s.wantRolls()
	})
}
