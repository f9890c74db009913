//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// An actuator knows the last change of each source, and asks nobody for one.
func TestAChangeThatAWorkloadHasMissedRollsItWhileNATSIsSilent(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", reads("secret/db"))
		s.workload("other", auto, reads("secret/db"))
		s.begin("secret/db")
		moment := s.reserve()
		s.rotate("two", "other")
		s.wantTold("other started content-changed", "other completed rolled-out")
		s.nats.Stop()
		s.at(moment, func() { s.edit("web", auto) })
		s.pass(20 * time.Second)
		s.wantWrites("web rolled")
		s.wantRecord("web", "secret/db")
		s.nats.Start()
		s.pass(time.Minute)
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestARevertedRollIsRepeatedInTimeWhileNATSIsSilent(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		s.revert("web")
		s.nats.Stop()
		s.pass(50 * time.Second)
		s.wantRolls()
		s.pass(15 * time.Second)
		s.wantRolls("web")
		s.nats.Start()
		s.pass(time.Minute)
		s.wantTold("web started content-changed")
	})
}

// In a dry run, nothing on the workload shows that it was decided.
func TestAChangeThatAWorkloadHasMissedIsToldOnceInADryRun(t *testing.T) {
	play(t, func(s *scene) {
		s.options.DryRun = true
		s.workload("web", reads("secret/db"))
		s.begin("secret/db")
		moment := s.reserve()
		s.settled("secret/db", "password", "two")
		s.wantNothing()
		s.at(moment, func() { s.edit("web", auto) })
		s.pass(time.Hour)
		s.wantWrites()
		s.wantTold("web skipped dry-run")
		s.set("secret/db", "password", "three")
		s.pass(time.Hour)
		s.wantWrites()
		s.wantTold("web skipped dry-run")
	})
}

func TestAnOptInToAPatternOrAStoreMissesNoChangeOfThatMoment(t *testing.T) {
	tests := []struct {
		name, rollOn string
		changes      func(*scene)
	}{
		{"a source that only a pattern names", "configmap/release-*", func(s *scene) { s.set("configmap/release-1", "password", "two") }},
		{"a secret in a store", "openbao:secret/shop/db", func(s *scene) { s.rotateInStore("demo", "secret/shop/db", 2) }},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.workload("web", on("secret/db"))
			s.rotateInStore("demo", "secret/shop/db", 1)
			s.begin("secret/db", "configmap/release-1")
			s.rest()
			moment := s.reserve()
			tt.changes(s)
			s.settle()
			s.at(moment, func() { s.edit("web", on(tt.rollOn)) })
			s.pass(time.Minute)
			s.wantTold("web started content-changed", "web completed rolled-out")
			s.restartFor(time.Hour)
			s.wantTold()
		})
	}
}

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

// If the stream loses a change, the watcher publishes it again.
func TestAChangeThatWaitsOutlivesItsStream(t *testing.T) {
	tests := []struct {
		name         string
		lose, leader func(*scene)
	}{
		{"which is emptied", func(s *scene) { s.loseEvents() }, func(*scene) {}},
		{"which is emptied, and its leader", func(s *scene) { s.loseEvents() }, func(s *scene) { s.restart() }},
		{"which is made anew", (*scene).remakeStream, func(*scene) {}},
		{"which is made anew, and its leader", (*scene).remakeStream, func(s *scene) { s.restart() }},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			s.workload("web", auto, onHold, reads("secret/db"))
			s.workload("other", auto, reads("secret/other"))
			s.begin("secret/other", "secret/db")
			s.set("secret/db", "password", "two")
			s.pass(11 * time.Minute)
			s.wantRolls()
			s.wantTold("web held on-hold")
			test.lose(s)
			test.leader(s)
			s.again("secret/other") // It gets a sequence that another event had.
			s.again("secret/db")
			s.pass(11 * time.Minute)
			s.wantWrites()
			s.told()
			s.edit("web", letGo)
			s.settle()
			s.wantWrites("web rolled")
			s.wantRecord("web", "secret/db")
			s.wantTold("web started content-changed", "web completed rolled-out")
			s.settled("secret/other", "password", "two")
			s.wantWrites("other rolled")
			s.told()
			s.restartFor(time.Hour)
			s.wantNothing()
		})
	}
}
