//go:build !race

package actuate_test

import (
	"slices"
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
		s.workload("busy", auto, reads("secret/busy"))
		s.workload("busy-too", auto, reads("secret/busy"))
		s.workload("one", auto, reads("secret/late"))
		s.workload("two", auto, reads("secret/late"))
		s.workload("held", auto, reads("secret/held"), onHold)
		s.workload("office/refused", auto, reads("secret/refused"))
		s.workload("statefulset/idle", auto, reads("secret/idle"))
		s.begin("secret/broken", "secret/busy", "secret/late", "secret/held", "office/secret/refused", "secret/idle")
		for _, name := range []string{"failing", "busy", "busy-too"} {
			s.stall(name)
		}
		s.refuse("office/refused", deniedByAdmission())
		s.set("office/secret/refused", "password", "two")
		s.set("secret/broken", "password", "two")
		s.settle()
		s.fail("failing")
		s.pass(10 * time.Second)
		s.set("secret/busy", "password", "two")
		s.settle()
		s.set("secret/late", "password", "two") // There is a third slot, but not for this namespace.
		s.set("secret/held", "password", "two")
		s.pass(time.Hour)
		s.wantRolls("busy", "busy-too", "failing")

		measured := seen.measurements()
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
			if got, ok := measured.value(tt.name, tt.key, tt.label); !ok || got != tt.want {
				s.Errorf("%s{%s}: got %d, there: %t, want %d", tt.name, tt.label, got, ok, tt.want)
			}
		}
		// The gauges are a few seconds old.
		if got, _ := measured.value("keyturn.workloads.held.oldest", "reason", "on-hold"); got < 3590 || got > 3600 {
			s.Errorf("what is on hold has waited for %d s, want an hour", got)
		}
	})
}

func TestOnlyAWaitThatNobodyHasChosenCountsAsOwed(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web", auto, reads("secret/db"), onHold)
		s.begin("secret/db")
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
		ofTheWork := []string{"keyturn.workloads.pending", "keyturn.rollouts.active"}
		s.options.LeaderElect = true
		s.workload("web", auto, reads("secret/db"), onHold)
		first := s.begin("secret/db")
		s.set("secret/db", "password", "two")
		seen := s.instrument()
		s.start()
		s.pass(time.Minute)
		measured := seen.measurements()
		if got, ok := measured.value("keyturn.leader", "", ""); !ok || got != 0 {
			s.Errorf("keyturn.leader is %d, there: %t, want 0", got, ok)
		}
		if got, ok := measured.value("keyturn.workloads", "kind", "deployment"); !ok || got != 1 {
			s.Errorf("keyturn.workloads is %d, there: %t, want 1", got, ok)
		}
		for _, name := range ofTheWork {
			if _, ok := measured[name]; ok {
				s.Errorf("there is %s", name)
			}
		}

		first.stop()
		s.pass(time.Minute)
		measured = seen.measurements()
		if got, _ := measured.value("keyturn.leader", "", ""); got != 1 {
			s.Errorf("keyturn.leader of the next leader is %d, want 1", got)
		}
		for _, name := range ofTheWork {
			if _, ok := measured[name]; !ok {
				s.Errorf("the next leader does not show %s", name)
			}
		}
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
			name    string
			aspects []aspect
			want    []string // the annotations that are named; none: nothing is told
		}{
			{"no problem", []aspect{image("example.com/app:2")}, nil},
			{"a problem", []aspect{annotated(wave, "soon")}, []string{wave}},
			{"the same problem", []aspect{image("example.com/app:3")}, nil},
			{"another one", []aspect{without(wave), annotated(interval, "long")}, []string{interval}},
		} {
			s.edit("web", step.aspects...)
			s.pass(10 * time.Second)
			written := s.kubernetesEvents()[told:]
			told += len(written)
			if len(written) != min(1, len(step.want)) {
				s.Errorf("%s: %d Kubernetes Events are written", step.name, len(written))
				continue
			}
			for _, event := range written {
				text := textOf(event)
				for _, annotation := range []string{wave, interval} {
					if names := strings.Contains(text, annotation); names != slices.Contains(step.want, annotation) {
						s.Errorf("%s: that %s is invalid is told: %t: %s", step.name, annotation, names, text)
					}
				}
				if !strings.HasPrefix(text, "web Warning InvalidAnnotation ") {
					s.Errorf("%s: told is %s", step.name, text)
				}
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
