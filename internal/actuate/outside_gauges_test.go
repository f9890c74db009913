//go:build !race

package actuate_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTheGaugesShowWhatTheActuatorHasOnItsHands(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.options.MaxRollouts, s.options.RolloutTimeout = 3, 24*time.Hour
		s.workload("failing", auto, reads("secret/broken"))
		s.workload("after", auto, reads("secret/broken"), inWave(1))
		s.readers("secret/busy", "busy", "busy-too")
		s.readers("secret/late", "one", "two")
		s.workload("held", auto, reads("secret/held"), onHold)
		s.workload("office/refused", auto, reads("secret/refused"))
		s.workload("statefulset/idle", auto, reads("secret/idle"))
		s.begin("secret/broken", "secret/busy", "secret/late", "secret/held", "office/secret/refused", "secret/idle")
		for _, name := range []string{"failing", "busy", "busy-too"} {
			s.stall(name)
		}
		s.refuse("office/refused", deniedByAdmission())
		s.set("office/secret/refused", "password", "two")
		s.settled("secret/broken", "password", "two")
		s.fail("failing")
		s.pass(10 * time.Second)
		s.settled("secret/busy", "password", "two")
		s.set("secret/late", "password", "two") // There is a third slot, but not for this namespace.
		s.set("secret/held", "password", "two")
		s.pass(time.Hour)
		s.wantRolls("busy", "busy-too", "failing")

		for _, tt := range []struct {
			name, key, label string
			want             int64
		}{
			{"keyturn.dry.run", "", "", 0},
			{"keyturn.leader", "", "", 1},
			{"keyturn.workloads", "kind", "deployment", 8},
			{"keyturn.workloads", "kind", "cronjob", 0},
			{"keyturn.sources.behind", "", "", 0},
			{"keyturn.workloads.pending", "", "", 5},
			{"keyturn.workloads.refused", "kind", "deployment", 1},
			{"keyturn.workloads.held", "reason", "on-hold", 1},
			{"keyturn.workloads.held", "reason", "limit-reached", 2},
			{"keyturn.workloads.held", "reason", "lower-wave", 0},
			{"keyturn.workloads.held.oldest", "reason", "lower-wave", 0},
			{"keyturn.rollouts.active", "kind", "deployment", 2},
			{"keyturn.rollouts.failing", "kind", "deployment", 1},
		} {
			seen.want(tt.name, tt.key, tt.label, tt.want)
		}
		// The gauges are a few seconds old.
		if got, _ := seen.measurements().value("keyturn.workloads.held.oldest", "reason", "on-hold"); got < 3590 || got > 3600 {
			s.Errorf("what is on hold has waited for %d s, want an hour", got)
		}
	})
}

func TestOnlyAWaitThatNobodyHasChosenCountsAsOwed(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb(onHold)
		wantOwed := func(least, most time.Duration) {
			s.Helper()
			got, ok := seen.measurements().value("keyturn.workloads.owed.oldest", "", "")
			if waited := time.Duration(got) * time.Second; !ok || waited < least || waited > most {
				s.Errorf("after %s, a workload has waited for %s, there: %t, want %s to %s", s.elapsed(), waited, ok, least, most)
			}
		}
		wantOwed(0, 0)
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		wantOwed(0, 0)
		s.refuse("web", unavailable())
		s.edit("web", letGo)
		s.pass(10 * time.Minute)
		wantOwed(10*time.Minute-10*time.Second, 10*time.Minute)
		s.set("secret/db", "password", "three") // It is owed for as long.
		s.pass(10 * time.Minute)
		wantOwed(20*time.Minute-10*time.Second, 20*time.Minute)
		s.refuse("web", nil)
		s.pass(2 * time.Minute)
		s.wantRolls("web")
		wantOwed(0, 0)
	})
}

func TestAnActuatorThatStandsByShowsNothingOfTheWork(t *testing.T) {
	play(t, func(s *scene) {
		s.options.LeaderElect = true
		first := s.beginWeb(onHold)
		s.set("secret/db", "password", "two")
		seen := s.instrument()
		s.startFor(time.Minute)
		wantLeads := func(leads int64) {
			s.Helper()
			seen.want("keyturn.leader", "", "", leads)
			seen.want("keyturn.workloads", "kind", "deployment", 1)
			for _, name := range []string{"keyturn.workloads.pending", "keyturn.rollouts.active"} {
				if _, ok := seen.measurements()[name]; ok != (leads == 1) {
					s.Errorf("there is %s: %t", name, ok)
				}
			}
		}
		wantLeads(0)
		first.stop()
		s.pass(time.Minute)
		wantLeads(1)
	})
}

// The histogram leaves out what people have chosen.
func TestTheWaitForACanaryIsNoTimeThatAChangeTook(t *testing.T) {
	trial(t, func(s *scene) {
		seen := s.instrument()
		aGoesFirst(s)
		s.pass(bakeTime + bakeCheck)
		s.wantRolls("a", "b")
		if count, sum := seen.spent("keyturn.change.patch.duration"); count != 2 || sum > 60 {
			s.Errorf("%d patches took %v s", count, sum)
		}
	})
}

func TestTheProblemsOfAWorkloadAreToldOnceForEachWording(t *testing.T) {
	const wave, interval = "keyturn.dev/wave", "keyturn.dev/min-interval"
	play(t, func(s *scene) {
		s.beginWeb()
		told := 0
		for _, step := range []struct {
			aspects []aspect
			// names is the annotation of which people are told that it is invalid, and omits another one. They are told nothing if both are empty.
			names, omits string
		}{
			{[]aspect{image("example.com/app:2")}, "", ""},
			{[]aspect{annotated(wave, "soon")}, wave, interval},
			{[]aspect{image("example.com/app:3")}, "", ""},
			{[]aspect{without(wave), annotated(interval, "long")}, interval, wave},
		} {
			s.edit("web", step.aspects...)
			s.pass(10 * time.Second)
			written := s.kubernetesEvents()[told:]
			told += len(written)
			if step.names == "" && len(written) == 0 {
				continue
			}
			if len(written) != 1 || !strings.HasPrefix(textOf(written[0]), "web Warning InvalidAnnotation ") ||
				!strings.Contains(written[0].Message, step.names) || strings.Contains(written[0].Message, step.omits) {
				s.Errorf("after %s, told is %v, want once that %s is invalid", s.elapsed(), written, step.names)
			}
		}
	})
}

func TestTheLogSaysOnceThatAWorkloadIsRolledWithoutItsController(t *testing.T) {
	const targets = `targets:
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
`
	widgets := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	play(t, func(s *scene) {
		s.target(targets)
		s.serveCustom(map[schema.GroupVersionResource]string{widgets: "WidgetList"})
		s.workload("web", auto, reads("secret/db"), func(object *metav1.ObjectMeta, _ *corev1.PodTemplateSpec) {
			object.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "example.org/v1", Kind: "Widget", Name: "all", UID: "uid-all", Controller: new(true),
			}}
		})
		s.begin("secret/db")
		s.edit("web", image("example.com/app:2"))
		s.pass(10 * time.Second)
		if got := s.logged("workload=deployment/web namespace=shop controller=widget/all"); got != 1 {
			s.Errorf("it is said %d times, want once", got)
		}
	})
}
