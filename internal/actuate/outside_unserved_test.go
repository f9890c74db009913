//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

func TestWhatChangesWhileTheKindOfAWorkloadIsNotServedRollsItAfterwards(t *testing.T) {
	tests := []struct {
		name, rollOn string
		changes      func(*scene)
	}{
		{"a source that only a pattern names", "configmap/release-*", func(s *scene) { s.set("configmap/release-1", "password", "two") }},
		{"a secret in a store", "openbao:secret/shop/db", func(s *scene) { s.rotateInStore("demo", "secret/shop/db", 2) }},
	}
	leaders := []struct {
		name      string
		meanwhile func(*scene)
		told      []string
	}{
		{"with the same leader", func(*scene) {}, []string{"rollout/web held kind-not-served"}},
		{"with another leader, which does not know it", func(s *scene) { s.restart() }, nil},
	}
	for _, tt := range tests {
		for _, leader := range leaders {
			playOf(t, tt.name+", "+leader.name, func(s *scene) {
				rollouts := serveHealthy(s, on(tt.rollOn))
				s.rotateInStore("demo", "secret/shop/db", 1)
				s.begin("secret/db", "configmap/release-1")
				s.rest()
				rollouts.serve(false)
				s.pass(unserved)
				leader.meanwhile(s)
				s.wantTold()
				tt.changes(s)
				s.pass(time.Hour)
				s.wantTold(leader.told...)
				rollouts.serve(true)
				s.pass(time.Minute)
				s.wantTold("rollout/web started content-changed", "rollout/web completed rolled-out")
				s.restartFor(time.Hour)
				s.wantTold()
			})
		}
	}
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

func TestAWorkloadWhoseKindIsNotServedHoldsNobodyBack(t *testing.T) {
	play(t, func(s *scene) {
		rollingOut(s).serve(false)
		s.pass(50 * time.Second)
		s.wantRolls()
		s.pass(unserved)
		s.wantRolls("api")
	})
}

func TestAWorkloadThatFailedKeepsOthersBackAlthoughItsKindIsNotServed(t *testing.T) {
	play(t, func(s *scene) {
		rollouts := rollingOut(s)
		rollouts.webIsIn("Degraded")
		s.pass(10 * time.Second)
		s.wantTold("rollout/web failed deadline-exceeded", "api held peer-failed")
		rollouts.serve(false)
		s.pass(time.Hour)
		s.wantRolls()
		rollouts.serve(true)
		s.pass(time.Hour)
		s.wantRolls()
		s.wantTold()
		rollouts.webIsIn("Healthy")
		s.pass(10 * time.Second)
		s.wantRolls("api")
	})
}
