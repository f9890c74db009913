//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// reasonScene is a scene in which a reason is given.
type reasonScene struct {
	reason plan.Reason
	// given sets options, and makes workloads. By default, web reads secret/db.
	given func(s *scene)
	// sources are those that are observed then, by default secret/db.
	sources []string
	// happens is what leads to the reason, by default a change of secret/db.
	happens func(s *scene)
}

// webReads returns what makes the workload web, which reads a source.
func webReads(source string, aspects ...aspect) func(*scene) {
	return func(s *scene) { s.workload("web", append(aspects, reads(source))...) }
}

// twice changes secret/db, and changes it again once web was rolled.
func twice(s *scene) {
	s.set("secret/db", "password", "two")
	s.pass(5 * time.Second)
	s.set("secret/db", "password", "three")
}

// briefly changes a source for a moment.
func briefly(source string) func(*scene) {
	return func(s *scene) {
		s.set(source, "password", "two")
		s.pass(100 * time.Millisecond)
		s.set(source, "password", "one")
	}
}

// stalling changes secret/db while the rollouts of workloads make no progress.
func stalling(names ...string) func(*scene) {
	return func(s *scene) {
		for _, name := range names {
			s.stall(name)
		}
		s.set("secret/db", "password", "two")
		s.settle()
	}
}

func reasonScenes() []reasonScene {
	rollOnDelete := func(s *scene) { s.options.RollOnDelete = true }
	erase := func(s *scene) { s.erase("secret/db") }
	appear := func(s *scene) { s.appear("secret/db") }
	create := func(how plan.Creation) func(*scene) { return func(s *scene) { s.options.RollOnCreate = how } }
	with := func(options, workloads func(*scene)) func(*scene) {
		return func(s *scene) {
			options(s)
			workloads(s)
		}
	}
	two := func(s *scene) {
		s.workload("first", auto, reads("secret/db"))
		s.workload("second", auto, reads("secret/db"))
	}
	waves := func(s *scene) {
		s.workload("first", auto, reads("secret/db"))
		s.workload("second", auto, inWave(1), reads("secret/db"))
	}
	var rollouts *servedRollouts
	return []reasonScene{
		{reason: plan.NotOptedIn, given: webReads("secret/db", on("configmaps"))},
		{reason: plan.Excluded, given: webReads("secret/db", on("auto, !secret/db"))},
		{reason: plan.SourceIgnored, happens: func(s *scene) { s.setAs("secret/db", "password", "two", asIgnored) }},
		{reason: plan.PulledOnly, given: func(s *scene) {
			s.workload("web", auto, func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
				pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "db"}}
			})
		}},
		{reason: plan.SourceDeleted, happens: erase},
		{reason: plan.SourceNeeded, given: with(rollOnDelete, webReads("secret/db", auto)), happens: erase},
		{reason: plan.Deleted, given: with(rollOnDelete, webReads("secret/db?", auto)), happens: erase},
		{reason: plan.NamespaceTerminating, given: with(rollOnDelete, webReads("secret/db?", auto)), happens: func(s *scene) {
			terminating := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("it is being terminated"))
			terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			s.intercept("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, terminating })
			erase(s)
		}},
		{reason: plan.FirstSeen, happens: func(*scene) {}},
		{reason: plan.KeysNotConsumed, given: webReads("secret/db#user", auto)},
		{reason: plan.KeyMissing, given: webReads("secret/db#password", auto), happens: func(s *scene) { s.unset("secret/db", "password") }},
		{reason: plan.Stale, happens: func(s *scene) {
			earlier := s.nextVersion()
			s.set("secret/db", "password", "two")
			s.settle()
			s.setAs("secret/db", "password", "between", func(change *events.Change) {
				change.ResourceVersion, change.ChangedAt = earlier, earlier
			})
		}},
		{reason: plan.AlreadyRolled, happens: func(s *scene) {
			s.set("secret/db", "password", "two")
			s.pass(time.Minute)
			s.loseEvents()
			s.again("secret/db")
		}},
		{reason: plan.SameContent, happens: briefly("secret/db")},
		{
			reason: plan.ChangedBack, given: func(s *scene) { s.workload("web", on("configmap/team-*")) }, sources: []string{"configmap/team-a"},
			happens: briefly("configmap/team-a"),
		},
		{reason: plan.ChangedMeanwhile, given: webReads("secret/db", auto, onHold), happens: func(s *scene) {
			s.set("secret/db", "password", "two")
			s.pass(time.Minute)
			s.set("secret/db", "password", "one")
			s.pass(time.Minute)
			s.edit("web", without(events.AnnotationHold))
		}},
		{reason: plan.PodsNewer, happens: func(s *scene) {
			s.set("secret/db", "password", "two")
			s.edit("web", image("example.com/app:2"))
		}},
		{reason: plan.PodsStarting, happens: func(s *scene) {
			s.stall("web")
			s.set("secret/db", "password", "two")
			s.edit("web", image("example.com/app:2"))
		}},
		{reason: plan.Reverted, given: webReads("secret/db#password", auto), happens: func(s *scene) {
			stalling("web")(s)
			for _, delay := range append(s.options.RevertDelays[:], 0) {
				s.edit("web", unrolled)
				s.pass(delay + 10*time.Second)
			}
			s.set("secret/db", "user", "two") // For web, that is the same change.
		}},
		{
			reason: plan.PodsWaited, given: with(func(s *scene) { s.stall("web") }, webReads("secret/db", auto)), sources: []string{},
			happens: appear,
		},
		{
			reason: plan.CreationIgnored, given: with(create(plan.CreateNever), webReads("secret/db?", auto)), sources: []string{},
			happens: appear,
		},
		{reason: plan.Recreated, given: with(create(plan.CreateAlways), webReads("secret/db", auto)), happens: func(s *scene) {
			erase(s)
			s.pass(time.Minute)
			s.reappear("secret/db")
		}},
		{reason: plan.Appeared, given: webReads("secret/db?", auto), sources: []string{}, happens: appear},
		{reason: plan.Changed},
		{reason: plan.Suspended, given: func(s *scene) {
			s.options.StartCronJobs = true
			s.workload("cronjob/import", auto, reads("secret/db"))
			s.change("cronjob/import", func(object runtime.Object) {
				if cronJob, ok := object.(*batchv1.CronJob); ok {
					cronJob.Spec.Suspend = new(true)
				}
			})
		}},
		{reason: plan.Aborted, given: func(s *scene) {
			s.serveRollout(func(object *unstructured.Unstructured) {
				object.Object["status"] = map[string]any{"abort": true, "phase": "Degraded", "observedGeneration": "1"}
			})
		}},
		{reason: plan.Limit, given: with(func(s *scene) { s.options.MaxRollouts = 1 }, two), happens: stalling("first", "second")},
		{
			reason: plan.NamespaceLimit, given: with(func(s *scene) { s.options.MaxRolloutsPerNamespace = 1 }, two),
			happens: stalling("first", "second"),
		},
		{reason: plan.CanaryFirst, given: with(func(s *scene) { s.options.Canary = true }, two), happens: stalling("first", "second")},
		{reason: plan.LowerWave, given: waves, happens: stalling("first")},
		{reason: plan.PeerFailed, given: waves, happens: func(s *scene) {
			stalling("first")(s)
			s.fail("first")
		}},
		{reason: plan.ReloaderFirst, given: func(s *scene) {
			s.options.Reloader = true
			earlier := reloadedAt(time.Now().Add(-time.Hour), "secret/db")
			s.workload("web", auto, reads("secret/db"), earlier)
			s.workload("peer", auto, reads("secret/other"), earlier)
		}, happens: func(s *scene) {
			s.reloaderRolls("peer", "secret/other")
			s.set("secret/db", "password", "two")
		}},
		{reason: plan.OnHold, given: webReads("secret/db", auto, onHold)},
		{reason: plan.SourceOnHold, happens: func(s *scene) { s.setAs("secret/db", "password", "two", sourceHeld("tofu apply")) }},
		{reason: plan.WindowClosed, given: webReads("secret/db", auto, annotated(workload.AnnotationWindow, "0 3 * * * for 1h"))},
		{reason: plan.RolledRecently, given: webReads("secret/db", auto, annotated(workload.AnnotationMinInterval, "1h")), happens: twice},
		{reason: plan.RolledTooOften, given: webReads("secret/db", auto, annotated(workload.AnnotationMaxRollsPerHour, "1")), happens: twice},
		{
			reason: plan.Pausing,
			given:  with(func(s *scene) { s.options.Reloader = true }, webReads("secret/db", auto, pausing(time.Hour))),
		},
		{reason: plan.FilesPending, given: func(s *scene) { s.askPods().of("web") }},
		{reason: plan.KindNotServed, given: func(s *scene) {
			s.serveRollout(func(object *unstructured.Unstructured) {
				object.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply"})
			})
			rollouts = s.mayBeUnserved()
		}, happens: func(s *scene) {
			s.set("secret/db", "password", "two")
			s.settle()
			rollouts.serve(false)
			s.pass(goneLong)
		}},
		{reason: plan.DryRun, given: with(func(s *scene) { s.options.DryRun = true }, webReads("secret/db", auto))},
		{reason: plan.WorkloadGone, given: webReads("secret/db", auto, onHold), happens: func(s *scene) {
			s.set("secret/db", "password", "two")
			s.settle()
			s.delete("web")
		}},
	}
}

// saysReason reports whether a span has an event of the name of a reason, with that as an attribute.
func (m *telemetry) saysReason(reason string) bool {
	for _, span := range m.spans.Ended() {
		for _, event := range span.Events() {
			if event.Name == reason && attributeOf(event.Attributes, "keyturn.reason") == reason {
				return true
			}
		}
	}
	return false
}

func TestEveryReasonIsToldEverywhereFromOneDefinition(t *testing.T) {
	// Unknown is about a source that the stream does not know. Busy and history-pending are no decisions. A patch can be made of every workload.
	tested := map[plan.Reason]bool{plan.Unknown: true, plan.Busy: true, plan.HistoryPending: true, plan.NoPatch: true}
	for _, tt := range reasonScenes() {
		tested[tt.reason] = true
		name := tt.reason.String()
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				seen := s.instrument()
				if tt.given == nil {
					tt.given = webReads("secret/db", auto)
				}
				if tt.sources == nil {
					tt.sources = []string{"secret/db"}
				}
				if tt.happens == nil {
					tt.happens = func(s *scene) { s.set("secret/db", "password", "two") }
				}
				tt.given(s)
				actuator := s.begin(tt.sources...)
				tt.happens(s)
				s.pass(10 * time.Second)
				if decided, _ := seen.measurements().value("keyturn.decisions", "reason", name); decided == 0 {
					s.Error("keyturn.decisions does not count it")
				}
				actuator.stop() // The spans end.
				if !seen.saysReason(name) {
					s.Error("no span has an event of the name, with the attribute keyturn.reason")
				}
				if s.logged("reason="+name) == 0 {
					s.Error("no log line has it")
				}
				told := slices.ContainsFunc(s.outcomesSoFar(), func(o events.Outcome) bool { return o.Reason == name && o.Message != "" })
				if told == tt.reason.Silent() {
					s.Errorf("there is an outcome: %t", told)
				}
				heard := slices.ContainsFunc(s.kubernetesEvents(), func(e *corev1.Event) bool { return strings.HasPrefix(e.Message, name+": ") })
				if heard != plan.Loud(name) {
					s.Errorf("there is a Kubernetes Event: %t", heard)
				}
			})
		})
	}
	for _, reason := range plan.Reasons() {
		if !tested[reason] {
			t.Errorf("%s is not tested", reason)
		}
	}
}
