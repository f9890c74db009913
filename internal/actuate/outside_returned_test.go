//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/workload"
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

func TestWhatIsPendingOutlivesThatTheKindIsNotServed(t *testing.T) {
	play(t, func(s *scene) {
		rollouts := serveHealthy(s, onHold)
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.wantTold("rollout/web held on-hold")
		rollouts.serve(false)
		s.pass(unserved)
		s.wantTold("rollout/web held kind-not-served")
		s.set("secret/db", "password", "three")
		s.pass(20 * time.Minute)
		s.wantTold() // It is not told again and again, nor forgotten.
		rollouts.serve(true)
		s.pass(time.Minute)
		s.wantRolls()
		s.told()
		rollouts.change(rolloutResource, "web", func(object *unstructured.Unstructured) { onObject(object, letGo) })
		s.settle()
		s.wantRolls("rollout/web")
		s.wantTold("rollout/web started content-changed", "rollout/web completed rolled-out")
		s.wantRolledForLast("rollout/web", "secret/db") // It changed meanwhile.
	})
}

func TestWhatIsPendingForAWorkloadThatIsGoneIsForgottenWhenTheKindIsBack(t *testing.T) {
	play(t, func(s *scene) {
		rollouts := serveHealthy(s, onHold)
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		rollouts.serve(false)
		s.pass(unserved)
		s.wantTold("rollout/web held on-hold", "rollout/web held kind-not-served")
		rollouts.remove(rolloutResource, "web")
		rollouts.serve(true)
		s.pass(time.Minute)
		s.wantTold("rollout/web skipped workload-gone")
		s.pass(20 * time.Minute)
		s.wantTold()
		s.wantRolls()
	})
}

// A leader that knows the workload has it wait. Another one does not know it until then.
func TestWorkloadsGetWhatTheyHaveMissedWhenTheirKindIsServedAgain(t *testing.T) {
	tests := []struct {
		name      string
		meanwhile func(*scene)
		told      []string
	}{
		{"with the same leader", func(*scene) {}, []string{"rollout/web held kind-not-served"}},
		{"with another leader", func(s *scene) { s.restart() }, nil},
	}
	for _, test := range tests {
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
