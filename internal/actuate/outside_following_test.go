//go:build !race

package actuate_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/actuate"
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
		{"someone else has changed the template and its revision", func(s *scene) {
			s.edit("web", image("example.com/app:2"), podAnnotated(annotationRevision, "0123456789abcdef"))
		}, []string{"web skipped superseded"}},
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
		s.options.MaxRollouts = 1
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

// A StatefulSet whose pods come one after the other waits for a broken one for ever, also after the source was corrected.
func TestAStatefulSetThatWaitsForABrokenPodIsToldWhichToDelete(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("statefulset/db", auto, reads("secret/db"))
		s.begin("secret/db")
		s.stall("statefulset/db")
		s.rotate("two", "statefulset/db")
		s.pass(s.options.RolloutTimeout + 30*time.Second)
		s.wantTold("statefulset/db started content-changed", "statefulset/db failed timed-out")
		const remedy = "pod db-0 is not ready, and the StatefulSet replaces no pod before it is, not even that one: remove the cause, then delete the pod"
		s.wantLast("statefulset/db", "failed timed-out", "0 of 1 pods are available; "+remedy)
		written := s.kubernetesEvents()
		if last := textOf(written[len(written)-1]); !strings.HasPrefix(last, "statefulset/db Warning RolloutFailed timed-out: ") || !strings.Contains(last, remedy) {
			s.Errorf("the Kubernetes Event is %q, want that it names the pod", last)
		}
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
		{"a kind that is left out now", func(o *actuate.Options) { o.WorkloadKinds = []string{"statefulset"} }, false, "unwatched"},
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
	for _, test := range []struct {
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
	} {
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
