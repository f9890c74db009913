//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// unserved is longer than it takes until a kind counts as not served.
const unserved = 3 * time.Minute

// serveHealthy has the API server serve the Rollout web, whose pods are always ready.
func serveHealthy(s *scene, aspects ...aspect) *customs {
	s.Helper()
	return s.serveRollout(func(object *unstructured.Unstructured) {
		inPhase("Healthy")(object)
		onObject(object, aspects...)
	})
}

// A leader that knows the workload has it wait. Another one does not know it until then.
func TestWorkloadsGetWhatTheyHaveMissedWhenTheirKindIsServedAgain(t *testing.T) {
	for _, test := range []struct {
		name      string
		meanwhile func(*scene)
		told      []string
	}{
		{"with the same leader", func(*scene) {}, []string{"rollout/web held kind-not-served"}},
		{"with another leader", func(s *scene) { s.restart() }, nil},
	} {
		playOf(t, test.name, func(s *scene) {
			rollouts := serveHealthy(s)
			s.beginWeb()
			s.wantWrites("rollout/web recorded", "web recorded")
			for _, password := range []string{"two", "three"} {
				rollouts.serve(false)
				s.pass(unserved)
				test.meanwhile(s)
				s.set("secret/db", "password", password)
				s.pass(time.Minute)
				s.wantWrites("web rolled")
				s.wantTold(append(test.told, "web started content-changed", "web completed rolled-out")...)
				rollouts.serve(true)
				s.pass(time.Minute)
				s.wantWrites("rollout/web rolled")
				s.wantRolledForLast("rollout/web", "secret/db")
				s.wantTold("rollout/web started content-changed", "rollout/web completed rolled-out")
			}
			// Nothing has changed this time.
			rollouts.serve(false)
			s.pass(unserved)
			test.meanwhile(s)
			rollouts.serve(true)
			s.pass(20 * time.Minute)
			s.wantNothing()
		})
	}
}

// A workload that is seen for the first time with its kind may be new: what happened before it wanted the source does not roll it.
func TestAWorkloadThatIsFirstSeenWithItsKindIsNotRolledForWhatWasBefore(t *testing.T) {
	play(t, func(s *scene) {
		rollouts := serveHealthy(s, without(workload.AnnotationRollOn))
		rollouts.serve(false)
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		rollouts.change(rolloutResource, "web", func(object *unstructured.Unstructured) { onObject(object, auto) })
		rollouts.serve(true)
		s.pass(20 * time.Minute)
		s.wantWrites("rollout/web recorded")
		s.wantTold()
		s.settled("secret/db", "password", "three")
		s.wantWrites("rollout/web rolled")
	})
}

// rollingOut makes the Rollout web, which does not get ready with a change, and a Deployment of a higher wave, which waits for it.
func rollingOut(s *scene) *customs {
	s.Helper()
	rollouts := s.serveRollout(nil)
	s.workload("api", auto, inWave(1), reads("secret/db"))
	s.begin("secret/db")
	s.rest()
	s.set("secret/db", "password", "two")
	s.pass(time.Minute)
	s.wantRolls("rollout/web")
	s.wantTold("rollout/web started content-changed", "api held lower-wave")
	return rollouts
}

// webIsIn says that the Rollout web is in a phase.
func (c *customs) webIsIn(phase string) {
	c.s.Helper()
	c.change(rolloutResource, "web", inPhase(phase))
}

func TestARolloutWhoseKindIsNotServedForAWhileIsFollowedToItsEnd(t *testing.T) {
	for name, meanwhile := range map[string]func(*scene){
		"by the same leader": func(*scene) {},
		"by the next leader": func(s *scene) { s.restart() },
	} {
		playOf(t, name, func(s *scene) {
			rollouts := rollingOut(s)
			rollouts.serve(false)
			s.pass(unserved)
			s.soFar()
			meanwhile(s)
			s.pass(time.Hour) // longer than a rollout may make no progress
			rollouts.serve(true)
			s.pass(time.Minute)
			s.wantTold()
			rollouts.webIsIn("Healthy")
			s.pass(10 * time.Second)
			s.wantTold("rollout/web completed rolled-out")
		})
	}
}

// The watcher of a hub reports a secret in a store, and a Secret of its own cluster that has the name of one here.
func TestAnActuatorActsOnWhatAnotherClusterSaysOfASecretStore(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", on("openbao:secret/shop/db"))
		s.workload("other", on("secret/db"), reads("secret/db"))
		s.observe("secret/db")
		hub, err := bus.Open(s.Context(), s.nc, "hub", nil)
		testkit.Must(s, err)
		s.options.StoresFrom = []string{"hub"}
		s.startFor(time.Minute)
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
		s.restartFor(time.Minute)
		s.finish("web")
		s.settle()
		s.wantTold("web completed rolled-out")
		if count, sum := seen.spent("keyturn.change.ready.duration"); count != 1 || sum < 61 || sum > 63 {
			s.Errorf("it was measured %d times, %g s together; want once, a good minute", count, sum)
		}
		s.wantRolls()
	})
}
