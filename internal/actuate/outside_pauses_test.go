//go:build !race

package actuate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	k8stesting "k8s.io/client-go/testing"
)

const (
	annotationPausePeriod = "deployment.reloader.stakater.com/pause-period"
	annotationPausedAt    = "deployment.reloader.stakater.com/paused-at"
)

// pausing lets a Deployment wait for further changes for a period before each roll.
func pausing(period time.Duration) aspect { return annotated(annotationPausePeriod, period.String()) }

// pausedAt returns when a workload says that its last pause began, zero if it says nothing.
func (s *scene) pausedAt(name string) time.Time {
	s.Helper()
	at, _ := time.Parse(time.RFC3339, s.annotation(name, annotationPausedAt))
	return at
}

func TestChangesWithinAPauseMakeOneRollAtItsEnd(t *testing.T) {
	play(t, func(s *scene) {
		const period = time.Hour
		s.options.Reloader = true
		s.workload("web", auto, reads("secret/db"), pausing(period))
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.wantTold("web held pause-period")
		begun := s.pausedAt("web")
		if begun.IsZero() {
			t.Fatal("the workload does not say since when")
		}
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantTold()
		// The stream and the workload remember it for the next leader.
		s.restart()
		s.set("secret/db", "password", "four")
		s.pass(time.Until(begun.Add(period - time.Second)))
		s.wantRolls()
		s.pass(2 * time.Second)
		s.wantRolls("web")
		s.wantTold("web held pause-period", "web started content-changed", "web completed rolled-out")
		if at := s.pausedAt("web"); !at.Equal(begun) {
			t.Errorf("the workload says that the pause began at %s, want still %s", at, begun)
		}
		if web, ok := s.object("web").(*appsv1.Deployment); !ok || web.Spec.Paused {
			t.Error("spec.paused is set")
		}
		s.pass(time.Minute)
		if at := s.pausedAt("web"); !at.IsZero() {
			t.Errorf("the workload still says that a pause began at %s", at)
		}
		s.pass(period)
		s.wantRolls()
		s.wantTold()
	})
}

func TestAPauseThatSomeoneElseHasBegunIsLeftToThem(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Reloader = true
		over := annotated(annotationPausedAt, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
		s.workload("left", reads("secret/db"), pausing(time.Second), over)
		s.workload("paused", reads("secret/db"), pausing(time.Second), over)
		s.alter("paused", func(d *appsv1.Deployment) { d.Spec.Paused = true })
		s.observe("secret/db")
		s.startFor(time.Hour)
		if at := s.pausedAt("left"); !at.IsZero() {
			t.Errorf("what was left behind still says that a pause began at %s", at)
		}
		paused, ok := s.object("paused").(*appsv1.Deployment)
		if !ok || s.pausedAt("paused").IsZero() || !paused.Spec.Paused {
			t.Errorf("the Deployment that is paused was changed: %v", paused)
		}
		s.wantRolls()
	})
}

func TestAPauseIsNoneWithoutReloader(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"), pausing(time.Hour))
		s.begin("secret/db")
		for _, password := range []string{"two", "three"} {
			s.set("secret/db", "password", password)
			s.pass(time.Minute)
			s.wantRolls("web")
		}
		if at := s.pausedAt("web"); !at.IsZero() {
			t.Errorf("it is marked as paused since %s", at)
		}
	})
}

func TestARollThatIsRepeatedWaitsForNoOtherPause(t *testing.T) {
	paused := func(s *scene) {
		s.options.Reloader = true
		s.workload("web", auto, reads("secret/db"), pausing(time.Minute))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(50 * time.Second)
		s.wantRolls()
	}
	playOf(t, "admission took it out of the patch", func(s *scene) {
		paused(s)
		end := s.strip()
		s.pass(10*time.Second + 500*time.Millisecond)
		end()
		s.pass(5 * time.Second)
		s.wantRolls("web")
	})
	playOf(t, "an operator took it back", func(s *scene) {
		paused(s)
		s.stall("web")
		s.pass(11 * time.Second)
		s.wantRolls("web")
		s.wantTold("web held pause-period", "web started content-changed")
		s.edit("web", unrolled)
		s.pass(s.options.RevertDelays[0] - 2*time.Second)
		s.wantRolls()
		s.wantTold("web failed reverted")
		s.pass(10 * time.Second)
		s.wantRolls("web")
		s.wantTold("web started content-changed")
	})
}

// A period begins with the first change that is to roll the workload. The actuator tries once a minute to write that on the workload.
func TestAPauseBeginsWithTheFirstChangeThatRollsAndEndsEvenIfItIsWrittenNowhere(t *testing.T) {
	play(t, func(s *scene) {
		const period = 5 * time.Minute
		s.options.Reloader = true
		s.workload("web", auto, reads("secret/db", "configmap/app"), pausing(period))
		s.begin("secret/db", "configmap/app")
		s.refuse("web", errors.New("no answer"))
		asked := func() int {
			count := 0
			for _, action := range s.requests("patch", "deployments") {
				if patch, ok := action.(k8stesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), "paused-at") {
					count++
				}
			}
			return count
		}
		// looked has the workload be looked at twice.
		looked := func(want int) {
			t.Helper()
			for _, text := range []string{"one", "two"} {
				s.edit("web", annotated("example.org/look", text))
				s.pass(time.Second)
				if got := asked(); got != want {
					t.Errorf("after %s, it was asked %d times to say that a pause has begun, want %d", s.elapsed(), got, want)
				}
			}
		}
		s.set("secret/db", "password", "two", sourceHeld("rotation"))
		s.pass(time.Hour)
		s.wantTold("web held source-on-hold")
		looked(0)
		begun := time.Now()
		s.settled("configmap/app", "user", "two")
		s.wantTold("web held pause-period")
		looked(1)
		s.pass(time.Minute)
		looked(2)
		if at := s.pausedAt("web"); !at.IsZero() {
			t.Errorf("it says that a pause began at %s", at)
		}
		s.pass(time.Until(begun.Add(period - time.Second)))
		s.wantRolls()
		s.refuse("web", nil)
		s.pass(2 * time.Second)
		s.wantRolls("web")
	})
}

func TestAfterAPauseAWaitCountsAgain(t *testing.T) {
	const period = time.Minute
	skipped := []string{"web held pause-period", "web skipped same-content", "web skipped same-content"}
	tests := []struct {
		name string
		// back is when the content comes back, counted from the end of the pause. Busy says that another workload holds up the decision.
		back        time.Duration
		busy        bool
		rolls, told []string
	}{
		{"it came back within the pause", -time.Second, false, nil, skipped},
		{"it came back within the pause, and another workload held up the decision", -time.Second, true, nil, skipped},
		{
			"it came back while another workload held it up", 2 * time.Second, true,
			[]string{"web"},
			[]string{"web held pause-period", "web started changed-meanwhile", "web completed rolled-out"},
		},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.Reloader, s.options.PatchWorkers = true, 1
			s.workload("web", auto, reads("secret/db", "configmap/app"), pausing(period))
			s.workload("other", auto, reads("secret/other"))
			s.begin("secret/db", "configmap/app", "secret/other")
			end := time.Now().Add(period)
			s.set("secret/db", "password", "two")
			s.pass(20 * time.Second)
			s.set("configmap/app", "password", "two") // It joins the pause that has begun.
			s.pass(time.Until(end.Add(-3 * time.Second)))
			if tt.busy {
				s.patchesTake("other", 12*time.Second)
				s.set("secret/other", "password", "two")
			}
			s.pass(time.Until(end.Add(tt.back)))
			s.set("secret/db", "password", "one")
			s.set("configmap/app", "password", "one")
			s.pass(time.Until(end.Add(time.Minute)))
			var rolls, told []string
			for _, name := range s.whoRolled() {
				if name != "other" {
					rolls = append(rolls, name)
				}
			}
			for _, outcome := range s.told() {
				if firstWord(outcome) != "other" {
					told = append(told, outcome)
				}
			}
			if diff := cmp.Diff(tt.rolls, rolls); diff != "" {
				s.Errorf("rolled (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.told, told); diff != "" {
				s.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
