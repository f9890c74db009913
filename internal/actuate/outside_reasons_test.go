//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// reading returns aspects of a workload that rolls on all that it reads.
func reading(source string, more ...aspect) []aspect {
	return append([]aspect{auto, reads(source)}, more...)
}

// dbChangesBefore changes what everybody reads, and waits until that is over.
func dbChangesBefore(s *scene) {
	s.set("secret/db", "password", "zero")
	s.pass(time.Minute)
}

// situations returns one for each reason that is given.
func situations() []situation {
	return slices.Concat(skipSituations(), recordSituations(), rollSituations(), holdSituations())
}

func skipSituations() []situation {
	erase := func(s *scene) { s.erase("secret/db") }
	rollOnDelete := func(o *actuate.Options) { o.RollOnDelete = true }
	return []situation{
		{reason: plan.NotOptedIn, web: reading("secret/db", on("configmaps"))},
		{reason: plan.Excluded, web: reading("secret/db", on("auto, !secret/db"))},
		{reason: plan.SourceIgnored, before: dbChangesBefore, act: func(s *scene) { s.mark("secret/db", asIgnored) }},
		{reason: plan.PulledOnly, web: []aspect{auto, func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
			pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "db"}}
		}}},
		{reason: plan.SourceDeleted, before: dbChangesBefore, act: erase},
		{reason: plan.SourceDeleted, options: rollOnDelete, before: dbChangesBefore, act: erase},
		{reason: plan.FirstSeen, untraced: true, act: func(s *scene) { s.mark("secret/db") }},
		{reason: plan.KeysNotConsumed, web: reading("secret/db#password"), act: func(s *scene) { s.set("secret/db", "user", "two") }},
		{reason: plan.KeyMissing, web: reading("secret/db#password"), act: func(s *scene) { s.unset("secret/db", "password") }},
		{reason: plan.KeyAwaited, web: []aspect{auto, reads("secret/db#password", "secret/db#token")}},
		{reason: plan.AlreadyRolled, before: dbChangesBefore, act: publishesAnew},
		{reason: plan.SameContent, unexplained: true, act: func(s *scene) {
			dbChanges(s)
			s.set("secret/db", "password", "one")
		}},
		{reason: plan.BeforeOptIn, unexplained: true, given: func(s *scene) {
			s.workload("web", reads("secret/db"))
			s.begin("secret/db")
			dbChangesBefore(s)
			s.refuse("web", errors.New("it gets no record"))
		}, act: func(s *scene) {
			s.edit("web", auto)
			s.pass(time.Second)
			s.mark("secret/db")
		}},
		{reason: plan.Reverted, before: undoEveryRoll, act: func(s *scene) { s.mark("secret/db") }},
		{reason: plan.DryRun, unexplained: true, options: func(o *actuate.Options) { o.DryRun = true }},
		{reason: plan.WorkloadGone, unexplained: true, act: func(s *scene) {
			dbChanges(s)
			s.pass(100 * time.Millisecond)
			s.delete("web")
		}},
	}
}

func recordSituations() []situation {
	return []situation{
		{reason: plan.ChangedBack, unexplained: true, given: func(s *scene) {
			s.workload("web", reading("secret/db")...)
			s.refuse("web", errors.New("it gets no record"))
			s.begin("secret/db")
			s.refuse("web", nil)
		}, act: func(s *scene) {
			dbChanges(s)
			s.set("secret/db", "password", "one")
		}},
		{reason: plan.PodsNewer, unexplained: true, act: func(s *scene) {
			dbChanges(s)
			s.edit("web", image("example.com/app:2"))
		}},
		{reason: plan.PodsWaited, act: func(s *scene) { s.appear("secret/db") }, given: func(s *scene) {
			s.stall("web")
			withoutSource("secret/db")(s)
		}},
		{
			reason: plan.CreationIgnored, given: withoutSource("secret/db?"), act: func(s *scene) { s.appear("secret/db") },
			options: func(o *actuate.Options) { o.RollOnCreate = plan.CreateNever },
		},
		{reason: plan.RecordCorrected, before: forgedBefore, act: func(s *scene) { s.mark("secret/db") }},
		{reason: plan.Suspended, about: "cronjob/web", options: func(o *actuate.Options) { o.Jobs = []string{actuate.JobsStart} }, given: func(s *scene) {
			s.cronJob("web", true)
			s.begin("secret/db")
		}},
	}
}

func rollSituations() []situation {
	return []situation{
		{
			reason: plan.Deleted, options: func(o *actuate.Options) { o.RollOnDelete = true }, web: reading("secret/db?"),
			act: func(s *scene) { s.erase("secret/db") },
		},
		{reason: plan.Appeared, options: func(o *actuate.Options) { o.RollOnCreate = plan.CreateAlways }, act: func(s *scene) {
			s.erase("secret/db")
			s.pass(time.Minute)
			s.appear("secret/db")
		}},
		{reason: plan.Appeared, given: withoutSource("secret/db?"), act: func(s *scene) { s.appear("secret/db") }},
		{reason: plan.Changed},
		{reason: plan.RecordImpossible, before: forgedBefore},
	}
}

func holdSituations() []situation {
	peerRolls := func(s *scene) {
		s.observe("secret/other")
		s.stall("peer")
		s.settled("secret/other", "password", "two")
	}
	reloader := func(o *actuate.Options) { o.Reloader.On = true }
	return []situation{
		{reason: plan.PodsStarting, unexplained: true, act: func(s *scene) {
			s.stall("web")
			dbChanges(s)
			s.edit("web", image("example.com/app:2"))
		}},
		{reason: plan.Aborted, unexplained: true, given: func(s *scene) {
			s.serveRollout(func(object *unstructured.Unstructured) {
				object.Object["status"] = map[string]any{"phase": "Degraded", "abort": true, "observedGeneration": "1"}
			})
			s.begin("secret/db")
		}},
		{reason: plan.Limit, unexplained: true, options: func(o *actuate.Options) { o.MaxRollouts = 1 }, peer: reading("secret/other"), before: peerRolls},
		{reason: plan.PeerFailed, unexplained: true, web: reading("secret/db", onHold), peer: reading("secret/db"), before: func(s *scene) {
			s.stall("peer")
			dbChanges(s)
			s.settle()
			s.fail("peer")
			s.pass(10 * time.Second)
		}, act: func(s *scene) { s.edit("web", letGo) }},
		{reason: plan.CanaryFirst, unexplained: true, options: func(o *actuate.Options) { o.Canary = 5 * time.Minute }, peer: reading("secret/db")},
		{reason: plan.LowerWave, unexplained: true, peer: reading("secret/db", inWave(-1)), before: func(s *scene) { s.stall("peer") }},
		{reason: plan.ReloaderFirst, unexplained: true, options: reloader, peer: reading("secret/other"), act: func(s *scene) {
			s.reloaderRolls("peer", "secret/other")
			dbChanges(s)
		}},
		{reason: plan.OnHold, unexplained: true, web: reading("secret/db", onHold)},
		{reason: plan.SourceOnHold, act: func(s *scene) {
			dbChanges(s)
			s.mark("secret/db", sourceHeld("tofu apply"))
		}},
		{reason: plan.WindowClosed, unexplained: true, options: func(o *actuate.Options) { o.Window = "0 1 * * * for 1h" }},
		{
			reason: plan.RolledRecently, unexplained: true, before: dbChangesBefore,
			web: reading("secret/db", annotated(workload.AnnotationMinInterval, "10m")),
		},
		{
			reason: plan.RolledTooOften, unexplained: true, before: dbChangesBefore,
			web: reading("secret/db", annotated(workload.AnnotationMaxRollsPerHour, "1")),
		},
		{reason: plan.Endless, unexplained: true, before: func(s *scene) {
			for i := range 13 {
				s.set("secret/db", "password", strconv.Itoa(i))
				s.pass(time.Minute)
			}
		}},
		{
			reason: plan.Pausing, unexplained: true, options: reloader,
			web: reading("secret/db", annotated("deployment.reloader.stakater.com/pause-period", "1h")),
		},
		{reason: plan.FilesPending, unexplained: true, given: func(s *scene) {
			s.askPods().of("web")
			s.begin("secret/db")
		}},
		kindNotServed(),
	}
}

// kindNotServed is the situation in which a Rollout waits, and its kind is not served any more.
func kindNotServed() situation {
	var rollouts *customs
	return situation{
		reason: plan.KindNotServed, unexplained: true,
		given: func(s *scene) {
			rollouts = serveHealthy(s, onHold)
			s.begin("secret/db")
			dbChanges(s)
			s.settle()
		},
		act: func(s *scene) {
			rollouts.serve(false)
			s.pass(unserved)
		},
	}
}

// withoutSource makes web, which reads a source that is not there, and has an actuator started.
func withoutSource(what string) func(*scene) {
	return func(s *scene) {
		s.Helper()
		s.workload("web", reading(what)...)
		s.begin()
	}
}

// undoEveryRoll changes the source, and puts back the pod template of before after each roll, until the workload is not rolled for it any more.
func undoEveryRoll(s *scene) {
	s.Helper()
	s.stall("web")
	dbChangesBefore(s)
	for _, delay := range append(s.options.RevertDelays[:], time.Minute) {
		s.wantRolls("web")
		s.edit("web", unrolled)
		s.pass(delay + 10*time.Second)
	}
	s.wantRolls()
}

// publishesAnew has another leader see the last event of secret/db after the stream has lost that.
func publishesAnew(s *scene) {
	s.loseEvents("secret/db")
	s.restartFor(time.Minute)
	s.again("secret/db")
}
