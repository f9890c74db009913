//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
)

func TestARolloutIsFollowedToItsEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(s *scene)
		want []string
	}{
		{"pods are still replaced", func(*scene) {}, nil},
		{"someone has paused it", func(s *scene) { s.pauseRollout("web") }, nil},
		{"all pods are new", func(s *scene) { s.finish("web") }, []string{"web completed rolled-out"}},
		{"the controller has given up", func(s *scene) { s.fail("web") }, []string{"web failed deadline-exceeded"}},
		{
			"someone else has changed the template and its revision",
			func(s *scene) {
				s.edit("web", image("example.com/app:2"), podAnnotated(annotationRevision, "0123456789abcdef"))
			},
			[]string{"web skipped superseded"},
		},
		{"someone else has restored the template of before", func(s *scene) { s.edit("web", unrolled) }, []string{"web failed reverted"}},
		{"the workload is gone", func(s *scene) { s.delete("web") }, []string{"web skipped workload-gone"}},
		{
			"the workload has a successor",
			func(s *scene) {
				s.delete("web")
				s.workload("web", auto, reads("secret/db"))
			},
			[]string{"web skipped workload-gone"},
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.rolling()
			s.wantRolls("web")
			s.pass(time.Minute)
			s.wantTold("web started content-changed")
			tt.act(s)
			s.pass(30 * time.Second)
			s.wantTold(tt.want...)
			s.wantRolls()
		})
	}
}

func TestARolloutThatIsAbortedHasFailed(t *testing.T) {
	play(t, func(s *scene) {
		rollouts := s.serveRollout(nil)
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.wantTold("rollout/web started content-changed")
		rollouts.change(rolloutResource, "web", func(object *unstructured.Unstructured) {
			object.Object["status"] = map[string]any{"phase": "Degraded", "observedGeneration": "1", "abort": true, "message": "the analysis has failed"}
		})
		s.pass(time.Second)
		s.wantTold("rollout/web failed aborted")
		s.wantLast("rollout/web", "failed aborted", "the analysis has failed")
	})
}

func TestARolloutThatWasAbortedIsHeldUntilSomeoneLiftsTheAbort(t *testing.T) {
	play(t, func(s *scene) {
		rollouts := s.serveRollout(func(object *unstructured.Unstructured) {
			object.Object["status"] = map[string]any{"phase": "Degraded", "observedGeneration": "1", "abort": true}
		})
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantTold("rollout/web held rollout-aborted")
		s.pass(time.Hour)
		s.wantTold()
		// As kubectl argo rollouts retry does, which leaves the field there.
		rollouts.change(rolloutResource, "web", func(object *unstructured.Unstructured) {
			object.Object["status"] = map[string]any{"phase": "Progressing", "observedGeneration": "1", "abort": false}
		})
		s.pass(time.Minute)
		s.wantTold("rollout/web started content-changed")
	})
}

func TestALaterRolloutSupersedesTheOneInProgress(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		s.wantTold("web started content-changed")
		s.pass(time.Minute)
		s.rotate("three", "web")
		s.wantTold("web skipped superseded", "web started content-changed")
		s.finish("web")
		s.pass(time.Minute)
		s.wantTold("web completed rolled-out")
	})
}

func TestARolloutThatTakesTooLongEndsAndLeavesItsPlaceToOthers(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRolloutsPerNamespace = 1
		s.workload("paused", auto, reads("secret/one"))
		s.workload("slow", auto, reads("secret/two"))
		s.workload("next", auto, reads("secret/three"))
		s.begin("secret/one", "secret/two", "secret/three")
		s.stall("paused", "slow")
		s.settled("secret/one", "password", "two")
		s.wantRolls("paused")
		s.pauseRollout("paused")
		s.settled("secret/two", "password", "two")
		s.wantRolls("slow") // One that is paused needs no place.
		s.wantTold("paused started content-changed", "slow started content-changed")
		s.set("secret/three", "password", "two")
		s.pass(14 * time.Minute)
		s.wantRolls()
		s.wantTold("next held namespace-limit-reached")
		s.pass(2 * time.Minute)
		s.wantRolls("next")
		s.wantTold("slow failed timed-out", "next started content-changed", "next completed rolled-out")
		s.pass(3 * time.Hour)
		s.wantTold()
	})
}

func TestARolloutThatIsNoLongerWatchedDoesNotEndAsDeleted(t *testing.T) {
	for _, tt := range []struct {
		name string
		// options changes those of the next actuator, and gone says that the workload is deleted before that starts.
		options func(*actuate.Options)
		gone    bool
		want    string
	}{
		{"a workload that is gone", func(*actuate.Options) {}, true, "workload-gone"},
		{"a kind that is ignored now", func(o *actuate.Options) { o.IgnoreWorkloadKinds = []string{"deployments"} }, false, "unwatched"},
		{"a namespace that is left out now", func(o *actuate.Options) { o.Namespaces = []string{"another"} }, false, "unwatched"},
		{"a namespace that is ignored now", func(o *actuate.Options) { o.IgnoreNamespaces = []string{namespace} }, false, "unwatched"},
		{
			"a workload that is gone from a namespace of several",
			func(o *actuate.Options) { o.Namespaces = []string{"another", namespace} }, true, "workload-gone",
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
			leader := s.rolling()
			s.wantTold("web started content-changed")
			leader.stop()
			if tt.gone {
				s.delete("web")
			}
			tt.options(&s.options)
			s.startFor(time.Minute)
			s.wantTold("web skipped " + tt.want)
			if s.lastOf("web").Message == "" {
				s.Error("there is no message")
			}
		})
	}
}

func TestARolloutOfArgoRolloutsThatIsNoLongerWatchedDoesNotEndAsDeleted(t *testing.T) {
	play(t, func(s *scene) {
		now := time.Now()
		started := events.Outcome{
			Cluster: "demo", Verb: events.VerbStarted, ResourceVersion: "900", Time: now, StartedAt: now, Cause: "uid-1/900", Reason: "content-changed",
			Workload: events.Workload{Kind: "rollout", Namespace: namespace, Name: "web", UID: "uid-web"},
			Revision: "0123456789abcdef", Generation: 2, Sources: []events.OutcomeSource{{Source: "secret/db"}},
		}
		if err := errors.Join(s.bus.PublishOutcomes(s.Context(), started)...); err != nil {
			s.Fatal(err)
		}
		s.wantTold("rollout/web started content-changed")
		s.startFor(time.Minute)
		s.wantTold("rollout/web skipped unwatched")
	})
}
