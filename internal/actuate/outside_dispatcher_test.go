//go:build !race

package actuate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAWorkloadThatIsHeldForTwoReasonsIsReportedOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("failed", auto, reads("secret/db"))
		s.workload("lower", auto, reads("configmap/app"))
		s.workload("web", auto, reads("secret/db", "configmap/app"), inWave(1))
		s.begin("secret/db", "configmap/app")
		s.stall("failed")
		s.rotate("two", "failed")
		s.fail("failed")
		s.settle()
		s.wantLast("web", "held peer-failed", "deployment/failed")
		s.refuse("lower", errors.New("no"))
		s.told()
		s.set("configmap/app", "password", "two")
		s.pass(time.Hour) // longer than the stream recognizes what is told twice
		s.wantRolls()
		s.wantTold() // It waits for both, and a failure is the graver reason.
	})
}

// Which of the two limits is reached first depends on other rollouts.
func TestEachLimitThatHoldsAWorkloadIsReportedOnce(t *testing.T) {
	const forgotten = 11 * time.Minute // when the stream does not recognize any more what is told twice
	play(t, func(s *scene) {
		s.options.MaxRollouts, s.options.RolloutTimeout = 3, 24*time.Hour
		s.workload("web", auto, reads("secret/db"))
		for _, name := range []string{"own", "bank/a", "office/b"} {
			s.workload(name, auto, reads("secret/other"))
			s.stall(name)
		}
		s.begin("secret/db", "secret/other", "bank/secret/other", "office/secret/other")
		s.set("secret/other", "password", "two")
		s.settled("bank/secret/other", "password", "two")
		s.wantRolls("own", "bank/a")
		s.settled("secret/db", "password", "two")
		for range 4 { // Now its namespace has its share.
			s.stall("office/b")
			s.set("office/secret/other", "password", s.elapsed().String())
			s.pass(forgotten) // No slot is free.
			s.wantRolls("office/b")
			s.finish("office/b")
			s.pass(forgotten)
		}
		waitedFor := func() []string {
			var reasons []string
			for _, outcome := range s.outcomesOf("web") {
				reasons = append(reasons, string(outcome.Verb)+" "+outcome.Reason)
			}
			return reasons
		}
		want := []string{"held namespace-limit-reached", "held limit-reached"}
		if diff := cmp.Diff(want, waitedFor()); diff != "" {
			s.Errorf("told of web (-want +got):\n%s", diff)
		}
		s.edit("web", onHold)
		s.pass(10 * time.Second)
		s.edit("web", letGo)
		s.pass(10 * time.Second)
		want = append(want, "held on-hold", "held namespace-limit-reached")
		if diff := cmp.Diff(want, waitedFor()); diff != "" {
			s.Errorf("told of web when it has waited for something else as well (-want +got):\n%s", diff)
		}
	})
}

func TestWhatNewerPodsMakeNeedlessWaitsUntilTheyAreThere(t *testing.T) {
	tests := []struct {
		name        string
		then        func(*scene)
		rolls, told []string
	}{
		{name: "which holds it while they are not", then: func(*scene) {}},
		{name: "which is recorded when they are", then: func(s *scene) { s.finish("web") }, told: []string{"web skipped pods-newer"}},
		{
			name: "and it is rolled when they are taken back: the pods of before were never replaced",
			then: func(s *scene) { s.edit("web", image("example.com/app")) }, rolls: []string{"web"},
			told: []string{"web started content-changed"},
		},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.RolloutTimeout = 24 * time.Hour
			s.beginWeb()
			s.stall("web")
			s.set("secret/db", "password", "two")
			s.edit("web", image("example.com/app:bad"))
			s.pass(time.Minute)
			s.wantRolls()
			s.wantTold()
			tt.then(s)
			s.pass(time.Hour)
			s.wantRolls(tt.rolls...)
			s.wantTold(tt.told...)
		})
	}
}

// The workload is written after the change, by the resourceVersions, and an hour before it, by the clock.
func TestVersionsThatCannotBeComparedAreLoggedOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		for _, value := range []string{"two", "three"} {
			s.set("secret/db", "password", value)
			s.writeAt(time.Now().Add(-time.Hour), "kubectl", "web", image("example.com/app:"+value))
			s.settle()
			s.wantRolls("web")
			if n := strings.Count(s.logText(), "not comparable"); n != 1 {
				s.Errorf("it is logged %d times, want once", n)
			}
			s.pass(time.Minute) // What the actuator writes is no newer than the next change.
		}
	})
}

func TestADryRunReportsWhatWouldWait(t *testing.T) {
	change := func(s *scene) { s.set("secret/db", "password", "two") }
	tests := []struct {
		name       string
		given, act func(*scene)
		want       string
	}{
		{
			"pods that are being replaced, which will be newer than the change", nil,
			func(s *scene) {
				s.stall("web")
				change(s)
				s.edit("web", image("example.com/app:2"))
			},
			"web skipped pods-newer",
		},
		{
			"a rollout that was aborted",
			func(s *scene) {
				s.serveRollout(func(object *unstructured.Unstructured) {
					object.Object["status"] = map[string]any{"abort": true, "phase": "Degraded", "observedGeneration": "1"}
				})
			},
			change, "rollout/web skipped rollout-aborted",
		},
		{"a source on hold", nil, func(s *scene) { s.set("secret/db", "password", "two", sourceHeld("tofu apply")) }, "web skipped source-on-hold"},
		{"nothing", nil, change, "web skipped dry-run"},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.DryRun = true
			if tt.given == nil {
				s.workload("web", auto, reads("secret/db"))
			} else {
				tt.given(s)
			}
			s.begin("secret/db")
			tt.act(s)
			s.settle()
			s.wantTold(tt.want)
			s.pass(time.Minute)
			s.wantNothing()
		})
	}
}
