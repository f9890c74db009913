//go:build !race

package actuate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAWorkloadWaitsForAPeerThatFailed(t *testing.T) {
	tests := []struct {
		name string
		// reads is what the peer reads, by default what web reads. It fails when that has changed.
		reads string
		// then happens before web is on hold no more. The peer is on hold from then on.
		then  func(s *scene)
		waits bool
	}{
		{name: "that was rolled for the same change", waits: true},
		{name: "also when an event about another key came since", waits: true, then: func(s *scene) { s.set("secret/db", "user", "other") }},
		{name: "but not when the content has changed since: that may mend it", then: func(s *scene) { s.set("secret/db", "password", "three") }},
		{
			name: "but not when it was rolled for another source of this name",
			then: func(s *scene) {
				s.erase("secret/db")
				s.pass(time.Minute)
				s.set("secret/db", "password", "three")
			},
		},
		{
			name: "but not when it was never rolled for the source", reads: "secret/other",
			then: func(s *scene) { s.set("secret/db", "password", "two") },
		},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			source, key := "secret/db", "#password"
			if tt.reads != "" {
				source = tt.reads
			}
			s.workload("peer", auto, reads(source+key))
			s.workload("web", auto, onHold, reads("secret/db"+key))
			s.begin("secret/db", "secret/other")
			s.stall("peer")
			s.settled(source, "password", "two")
			s.fail("peer")
			s.pass(time.Minute)
			s.wantRolls("peer")
			s.edit("peer", onHold)
			if tt.then != nil {
				tt.then(s)
			}
			s.pass(time.Minute)
			s.wantRolls()
			s.edit("web", letGo)
			s.pass(time.Minute)
			if tt.waits {
				s.wantRolls()
				s.wantAmongTold("web held peer-failed")
			} else {
				s.wantRolls("web")
			}
		})
	}
	playOf(t, "but not for itself", func(s *scene) {
		s.workload("web", auto, reads("secret/db", "secret/other"))
		s.begin("secret/db", "secret/other")
		s.stall("web")
		s.settled("secret/db", "password", "two")
		s.fail("web")
		s.pass(time.Minute)
		s.wantRolls("web")
		s.settled("secret/other", "password", "two")
		s.wantRolls("web")
	})
}

// stalled has the rollout of a workload make no progress. A workload of a higher wave waits for it.
func stalled(s *scene) *running {
	s.Helper()
	s.workload("a", auto, reads("secret/db"))
	s.workload("b", auto, inWave(1), reads("secret/db"))
	r := s.begin("secret/db")
	s.stall("a")
	s.rotate("two", "a")
	return r
}

// timedOut has the rollout of a workload time out. A workload of a higher wave waits for it.
func timedOut(s *scene) *running {
	s.Helper()
	r := stalled(s)
	s.wantTold("a started content-changed", "b held lower-wave")
	s.pass(s.options.RolloutTimeout + 15*time.Second)
	s.wantRolls()
	s.wantTold("a failed timed-out", "b held peer-failed")
	return r
}

func TestARolloutThatTimedOutHoldsItsPeers(t *testing.T) {
	tests := []struct {
		name    string
		then    func(s *scene)
		failing int64
		want    []string
	}{
		{"while nothing happens", func(*scene) {}, 1, nil},
		{"until it is complete after all", func(s *scene) { s.finish("a") }, 0, []string{"b"}},
		{"until it is rolled again", func(s *scene) { s.repair("a") }, 0, []string{"b"}},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			seen := s.instrument()
			timedOut(s)
			seen.wantFailing(1)
			tt.then(s)
			s.pass(time.Hour)
			seen.wantFailing(tt.failing)
			s.wantRolls(tt.want...)
		})
	}
}

func TestTheNextLeaderSeesThatARolloutThatTimedOutHasRecovered(t *testing.T) {
	play(t, func(s *scene) {
		timedOut(s).stop()
		s.finish("a")
		s.startFor(time.Minute)
		s.wantRolls("b")
	})
}

// a reads db and other, and fails when it is rolled for other. b reads db, and is on hold until then.
func TestAFailureHoldsNobodyForAChangeThatTheFailedOneWasReadyWith(t *testing.T) {
	fail := func(s *scene) {
		s.fail("a")
		s.pass(time.Second)
	}
	ready := func(s *scene) { s.finish("a") }
	tests := []struct {
		name string
		// first is what happens to the rollout of a for db, and leads says that another actuator leads before the hold is taken off.
		first func(s *scene)
		leads bool
		want  []string
	}{
		{"the rollout for db was complete", ready, false, []string{"b"}},
		{"it was superseded before it was", func(*scene) {}, false, nil},
		{"it has failed", fail, false, nil},
		{"it has failed, and was complete after all", func(s *scene) {
			fail(s)
			ready(s)
		}, false, []string{"b"}},
		{"it was complete, and another actuator leads", ready, true, []string{"b"}},
		{"it was superseded before it was complete, and another actuator leads", func(*scene) {}, true, nil},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.workload("a", auto, reads("secret/db", "secret/other"))
			s.workload("b", auto, onHold, reads("secret/db"))
			s.begin("secret/db", "secret/other")
			s.stall("a")
			s.rotate("two", "a")
			tt.first(s)
			s.pass(time.Minute)
			s.stall("a")
			s.settled("secret/other", "password", "two")
			s.wantRolls("a")
			fail(s)
			if tt.leads {
				s.restartFor(time.Minute)
			}
			s.edit("b", letGo)
			s.pass(time.Minute)
			s.wantRolls(tt.want...)
			if tt.want == nil {
				s.wantAmongTold("b held peer-failed")
			}
		})
	}
}

// For example, someone sets an image that cannot be pulled after the rollout is complete.
func TestTheNextLeaderTakesNoWorkloadForFailedThatOthersHaveBroken(t *testing.T) {
	trial(t, func(s *scene) {
		s.workload("a", auto, reads("secret/db"))
		s.workload("b", auto, onHold, reads("secret/db"))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(bakeTime + bakeCheck)
		s.wantRolls("a")
		s.wantAmongTold("a completed rolled-out")
		s.stall("a")
		s.edit("a", func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
			pod.Labels = map[string]string{"version": "2"}
		})
		s.fail("a")
		s.pass(time.Minute)
		s.restartFor(time.Minute)
		s.wantRolls()
		s.edit("b", letGo)
		s.pass(time.Second)
		s.wantRolls("b")
	})
}
