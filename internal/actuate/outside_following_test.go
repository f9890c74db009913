//go:build !race

package actuate_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestARolloutIsFollowedToItsEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(s *scene)
		want []string
	}{
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
		s.wantTold("next held limit-reached")
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

func TestARolloutTimesOutWithoutProgressOnly(t *testing.T) {
	const pods = 30
	type step struct {
		after time.Duration
		do    func(s *scene)
	}
	progress := func(updated, available int32) func(*scene) {
		return func(s *scene) { s.pods("web", updated, available) }
	}
	pause := func(s *scene) { s.pauseRollout("web") }
	resume := func(s *scene) { s.alter("web", func(d *appsv1.Deployment) { d.Spec.Paused = false }) }
	tests := []struct {
		name  string
		steps []step
		// last is how long after the last step nothing has happened, and ends says that it then times out.
		last time.Duration
		ends bool
	}{
		{
			name:  "it has been slow for long, and a pod was replaced a minute ago",
			steps: []step{{14 * time.Minute, progress(28, pods)}}, last: 2 * time.Minute,
		},
		{name: "it is paused", steps: []step{{0, pause}}, last: 3 * time.Hour},
		{name: "it makes no progress after it is resumed", steps: []step{{0, pause}, {time.Minute, resume}}, last: 15 * time.Minute, ends: true},
		{
			name:  "a pod crashes and comes up again",
			steps: []step{{0, progress(3, pods)}, {10 * time.Minute, progress(3, pods-1)}, {4 * time.Minute, progress(3, pods)}},
			last:  time.Minute, ends: true,
		},
		{
			name:  "it was scaled",
			steps: []step{{0, progress(3, pods)}, {14 * time.Minute, func(s *scene) { s.scale("web", pods-10) }}}, last: 2 * time.Minute,
		},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.stall("web")
			s.scale("web", pods)
			s.pods("web", pods, pods)
			s.begin("secret/db")
			s.rotate("two", "web")
			s.wantTold("web started content-changed")
			for _, step := range test.steps {
				s.pass(step.after)
				s.wantTold()
				step.do(s)
			}
			s.pass(test.last - 10*time.Second)
			s.wantTold()
			s.pass(20 * time.Second)
			if test.ends {
				s.wantTold("web failed timed-out")
			} else {
				s.wantTold()
			}
		})
	}
}

func TestARolloutThatRestartsPodsLaterHasItsTimeFromThenOn(t *testing.T) {
	play(t, func(s *scene) {
		restart := midnight.Add(17 * time.Minute).Format(time.RFC3339)
		s.serveRollout(func(object *unstructured.Unstructured) {
			object.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto", "reloader.stakater.com/rollout-strategy": "restart"})
			if err := unstructured.SetNestedField(object.Object, restart, "spec", "restartAt"); err != nil {
				s.Fatal(err)
			}
		})
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.wantTold("rollout/web started content-changed")
		s.pass(30 * time.Minute) // 14 of them after the restart
		s.wantTold()
		s.pass(2 * time.Minute)
		s.wantTold("rollout/web failed timed-out")
	})
}

// A restore of etcd with --bump-revision takes the generation back, and resourceVersions go on.
func TestAGenerationThatHasGoneBackFailsNoRollout(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		before := s.deployment(s.object("web"))
		s.stall("web")
		s.rotate("two", "web")
		s.overwrite("web", func(d *appsv1.Deployment) { before.DeepCopyInto(d) })
		s.pass(time.Hour)
		s.wantTold("web started content-changed", "web skipped superseded")
		s.wantRolls()
	})
}
