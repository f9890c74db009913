//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestAWorkloadWaitsForLowerWaves(t *testing.T) {
	failing := func(s *scene) { s.refuse("peer", errors.New("connection reset")) }
	releasing := func(s *scene) { s.edit("peer", image("app:2")) }
	pausing := func(s *scene) { s.pauseRollout("peer") }
	holding := func(s *scene) { s.edit("peer", onHold) }
	tests := []struct {
		name string
		// web and peer are the waves, and reads is what the peer reads, by default what web reads.
		web, peer int
		reads     string
		// before happens before the change, during while it is gathered, and after when the peer was rolled, if it may be.
		before, during, after func(s *scene)
		waits                 bool
	}{
		{name: "that are being rolled out for the same source", web: 1, waits: true},
		{name: "that wait to be rolled for it", web: 1, before: failing, waits: true},
		{name: "a wave may be negative", peer: -1, waits: true},
		{name: "but not for those of its own wave", web: 1, peer: 1},
		{name: "nor for those of a higher one", peer: 1, before: failing},
		{name: "nor for those that have nothing to do", web: 1, reads: "secret/other"},
		{
			name: "nor for those that are rolled out for another source", web: 1, reads: "secret/other",
			before: func(s *scene) { s.set("secret/other", "password", "two") },
		},
		{name: "nor for those that wait for people in the rollout", web: 1, after: pausing},
		{name: "nor for those that are on hold", web: 1, before: holding},
		{name: "but for those that are being rolled out although they are on hold since", web: 1, after: holding, waits: true},
		{
			name: "nor for those whose source is on hold", web: 1,
			before: func(s *scene) { s.edit("web", annotated(workload.AnnotationRollNow, "1")) },
			during: func(s *scene) { s.mark("secret/db", sourceHeld("tofu apply")) },
		},
		{name: "but for those whose own rollout is replacing the pods", web: 1, during: releasing, waits: true},
		{name: "nor for those whose own rollout is to replace the pods and waits for people", web: 1, during: releasing, after: pausing},
		{
			name: "and for those whose own rollout waits and that are to be rolled", web: 1,
			before: func(s *scene) {
				pausing(s)
				failing(s)
			},
			waits: true,
		},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			at := func(do func(s *scene)) {
				if do != nil {
					do(s)
				}
			}
			if test.reads == "" {
				test.reads = "secret/db"
			}
			s.workload("web", auto, inWave(test.web), reads("secret/db"))
			s.workload("peer", auto, inWave(test.peer), reads(test.reads))
			s.begin("secret/db", "secret/other")
			s.stall("peer")
			at(test.before)
			s.set("secret/db", "password", "two")
			at(test.during)
			s.settle()
			at(test.after)
			s.pass(10 * time.Second)
			rolls := s.whoRolled()
			if got := !slices.Contains(rolls, "web"); got != test.waits {
				s.Fatalf("it waits: %t, want %t; rolled are %q", got, test.waits, rolls)
			}
			if !test.waits {
				return
			}
			s.refuse("peer", nil)
			s.finish("peer")
			s.pass(time.Minute)
			if rolls := s.whoRolled(); !slices.Contains(rolls, "web") {
				s.Errorf("it still waits when the other one is finished; rolled are %q", rolls)
			}
		})
	}
}

// argoPeer makes a Rollout of Argo Rollouts that reads secret/db, and is of the wave 0. The returned function changes it. With restarts,
// a roll restarts its pods instead of changing their template.
func argoPeer(s *scene, status map[string]any, restarts bool) (change func(how func(*unstructured.Unstructured))) {
	s.Helper()
	rollouts := s.serveRollout(func(peer *unstructured.Unstructured) {
		peer.SetName("peer")
		peer.Object["status"] = status
		if restarts {
			onObject(peer, annotated("reloader.stakater.com/rollout-strategy", "restart"))
		}
	})
	return func(how func(*unstructured.Unstructured)) {
		s.Helper()
		rollouts.change(rolloutResource, "peer", how)
	}
}

// restartAt has the pods of a Rollout be restarted at a time, as a person does.
func restartAt(at time.Time) func(*unstructured.Unstructured) {
	return func(peer *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(peer.Object, at.Format(time.RFC3339), "spec", "restartAt")
	}
}

// labeled changes the pod template of a Rollout.
func labeled(peer *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(peer.Object, "2", "spec", "template", "metadata", "labels", "version")
}

func TestALowerWaveThatWasAbortedIsNotWaitedFor(t *testing.T) {
	play(t, func(s *scene) {
		argoPeer(s, map[string]any{"phase": "Degraded", "abort": true, "observedGeneration": "1"}, false)
		s.workload("web", auto, inWave(1), reads("secret/db"))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(10 * time.Second)
		s.wantRolls("web")
		s.wantAmongTold("rollout/peer held rollout-aborted")
	})
}

func TestALowerWaveThatIsRestartedLaterIsNotWaitedFor(t *testing.T) {
	play(t, func(s *scene) {
		change := argoPeer(s, map[string]any{"phase": "Healthy", "observedGeneration": "1"}, true)
		s.workload("web", auto, inWave(1), reads("secret/db"))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.wantRolls() // The restart has begun.
		s.wantTold("rollout/peer started content-changed", "web held lower-wave")
		change(restartAt(midnight.AddDate(100, 0, 0)))
		s.pass(10 * time.Second)
		s.wantRolls("web")
	})
}

// Somebody has changed the pods of the lower wave after the change, and has them restarted in an hour. web is on hold until it is looked at.
func TestARestartThatSomebodyHasScheduledIsWaitedForOnceItsTimeHasCome(t *testing.T) {
	scheduled := midnight.Add(time.Hour)
	tests := []struct {
		name string
		at   time.Time
		want []string
	}{
		{"before that", scheduled.Add(-time.Minute), []string{"web"}},
		{"then", scheduled.Add(time.Minute), nil},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			change := argoPeer(s, map[string]any{"phase": "Healthy", "observedGeneration": "1"}, true)
			s.workload("web", auto, inWave(1), onHold, reads("secret/db"))
			s.begin("secret/db")
			s.set("secret/db", "password", "two")
			change(func(peer *unstructured.Unstructured) {
				labeled(peer)
				restartAt(scheduled)(peer)
			})
			s.passUntil(tt.at)
			s.wantRolls()
			s.edit("web", letGo)
			s.pass(10 * time.Second)
			s.wantRolls(tt.want...)
			if tt.want != nil {
				return
			}
			s.wantAmongTold("web held lower-wave")
			change(func(peer *unstructured.Unstructured) {
				peer.Object["status"] = map[string]any{"phase": "Healthy", "observedGeneration": "1", "restartedAt": scheduled.Format(time.RFC3339)}
			})
			s.pass(10 * time.Second)
			s.wantRolls("web")
		})
	}
}
