//go:build !race

package actuate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheCanaryIsOneWhosePodsAreReady(t *testing.T) {
	trial(t, func(s *scene) {
		s.readers("secret/db", "a", "b")
		s.begin("secret/db")
		s.pods("a", 1, 0)
		s.rotate("two", "b")
		s.wantAmongTold("a held canary-first")
		s.pass(bakeTime + bakeCheck)
		s.wantRolls("a")
	})
}

// The event of a deletion has the resourceVersion of the last change, with which all are ready.
func TestOneGoesFirstWithADeletion(t *testing.T) {
	trial(t, func(s *scene) {
		s.options.RollOnDelete = true
		s.workload("a", auto, reads("secret/db?"))
		s.workload("b", auto, reads("secret/db?"))
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(bakeTime + time.Minute)
		s.wantRolls("a", "b")
		s.told()
		s.stall("a")
		s.erase("secret/db")
		s.settle()
		s.wantRolls("a")
		s.wantTold("a started deleted", "b held canary-first")
		s.finish("a")
		s.pass(bakeTime - time.Second)
		s.wantRolls()
		s.pass(bakeCheck)
		s.wantRolls("b")
	})
}

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
		{
			name: "nor for those that are rolled out for another source", web: 1, reads: "secret/other",
			before: func(s *scene) { s.set("secret/other", "password", "two") },
		},
		{name: "nor for those that wait for people in the rollout", web: 1, after: pausing},
		{name: "nor for those that are on hold", web: 1, before: holding},
		{name: "but for those that are being rolled out although they are on hold since", web: 1, after: holding, waits: true},
		{name: "but for those whose own rollout is replacing the pods", web: 1, during: releasing, waits: true},
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

// The rollout of the lower wave is replaced by one for another source, before its pods are ready with either.
func TestAWaveWaitsForARolloutThatAnotherChangeHasReplaced(t *testing.T) {
	for name, meanwhile := range map[string]func(*scene){
		"its new pods are not ready": func(*scene) {},
		// The controller then reports no pods, and that the rollout before was complete.
		"its strategy Recreate waits for the end of old pods": func(s *scene) {
			s.overwrite("a", func(d *appsv1.Deployment) {
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, UnavailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
				}}}
			})
		},
	} {
		playOf(t, name, func(s *scene) {
			s.workload("a", auto, reads("secret/db", "secret/other"))
			s.workload("b", auto, inWave(1), reads("secret/db"))
			s.begin("secret/db", "secret/other")
			s.stall("a")
			s.rotate("two", "a")
			meanwhile(s)
			s.set("secret/other", "password", "two")
			s.pass(10 * time.Second)
			s.wantRolls("a")
			s.finish("a")
			s.pass(time.Minute)
			s.wantRolls("b")
		})
	}
}

// TestAWaveWaitsForTheMomentOfALowerOneInAnOpenWindowAndForNoOtherTime has two workloads that read the same. The one of the higher wave has the
// earlier moment in the window.
func TestAWaveWaitsForTheMomentOfALowerOneInAnOpenWindowAndForNoOtherTime(t *testing.T) {
	const nightly = "0 1 * * * for 1h"
	opening := midnight.Add(time.Hour)
	before, after := opening.Add(-30*time.Minute), opening.Add(time.Second)
	inWindow, recently := annotated(workload.AnnotationWindow, nightly), []aspect{
		annotated(workload.AnnotationMinInterval, "1h"), annotated("keyturn.dev/rolled-at", opening.Add(-time.Minute).Format(time.RFC3339)),
	}
	tests := []struct {
		name          string
		first, second []aspect
		// at is when the source changes, and waits says that the second one waits for the first one.
		at    time.Time
		waits bool
	}{
		{"its moment is to come", []aspect{inWindow}, []aspect{inWindow}, before, true},
		{"to one that has no window, too", []aspect{inWindow}, nil, after, true},
		{"its window is closed", []aspect{inWindow}, nil, before, false},
		{"it is on hold in its window", []aspect{inWindow, onHold}, nil, after, false},
		{"it was rolled recently", recently, nil, after, false},
	}
	first, second := "", ""
	for i := 1; first == "" || second == ""; i++ {
		name := fmt.Sprintf("web-%d", i)
		switch delay := momentOf(t, name, nightly, before).Sub(opening); {
		case delay > 2*time.Minute:
			first = name
		case delay < time.Minute:
			second = name
		}
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.workload(first, append(tt.first, auto, inWave(0), reads("secret/db"))...)
			s.workload(second, append(tt.second, auto, inWave(1), reads("secret/db"))...)
			s.begin("secret/db")
			s.passUntil(tt.at)
			s.settled("secret/db", "password", "two")
			if !tt.waits {
				s.pass(10 * time.Second)
				s.wantRolls(second)
				return
			}
			moment := momentOf(s.T, first, nightly, before)
			s.passUntil(moment.Add(-10 * time.Second))
			s.wantRolls()
			s.wantAmongTold(second + " held lower-wave")
			s.passUntil(moment.Add(10 * time.Second))
			if rolls := s.whoRolled(); !slices.Equal(rolls, []string{first, second}) {
				s.Errorf("at the moment of %s, rolled are %q", first, rolls)
			}
		})
	}
}

// momentOf returns when a Deployment may be rolled in windows, after a time at which they are closed.
func momentOf(t *testing.T, name, windows string, closed time.Time) time.Time {
	t.Helper()
	deployments, _ := workload.BuiltIn().Named("deployment")
	w, ok := workload.Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{workload.AnnotationWindow: windows},
	}}, workload.Reading{})
	if !ok {
		t.Fatal("it is not read")
	}
	at, _ := w.Opening(closed)
	return at
}
