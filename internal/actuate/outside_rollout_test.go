//go:build !race

package actuate_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/workload"
)

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
		{name: "it is resumed after it was paused for long", steps: []step{{0, pause}, {16 * time.Minute, resume}}, last: time.Minute},
		{name: "it makes no progress after it is resumed", steps: []step{{0, pause}, {time.Minute, resume}}, last: 15 * time.Minute, ends: true},
		{name: "it makes no progress", last: 15 * time.Minute, ends: true},
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
	for _, tt := range []struct {
		name    string
		restore func(d, before *appsv1.Deployment)
		told    string
	}{
		{"of which the pod template is left", func(d, _ *appsv1.Deployment) {
			d.Generation = 1
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		}, "web completed rolled-out"},
		{"of which nothing is left", func(d, before *appsv1.Deployment) { before.DeepCopyInto(d) }, "web skipped superseded"},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.beginWeb()
			before, ok := s.object("web").(*appsv1.Deployment)
			if !ok {
				s.Fatal("web is no Deployment")
			}
			s.stall("web")
			s.rotate("two", "web")
			s.overwrite("web", func(d *appsv1.Deployment) { tt.restore(d, before) })
			s.pass(time.Hour)
			s.wantTold("web started content-changed", tt.told)
			s.wantRolls()
		})
	}
}

func TestARolloutThatIsResumedByTheNextLeaderHasItsTime(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.wantRolls("web")
		s.pass(14 * time.Minute)
		s.restartFor(14 * time.Minute)
		s.wantTold("web started content-changed")
		s.pass(2 * time.Minute)
		s.wantTold("web failed timed-out")
	})
}
