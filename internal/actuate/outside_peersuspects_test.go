//go:build !race

package actuate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
			s.set("secret/other", "password", "two")
			s.settle()
			s.wantRolls("a")
			fail(s)
			if tt.leads {
				s.restart()
				s.pass(time.Minute)
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
		s.restart()
		s.pass(time.Minute)
		s.wantRolls()
		s.edit("b", letGo)
		s.pass(time.Second)
		s.wantRolls("b")
	})
}
