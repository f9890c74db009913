//go:build !race

package actuate_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/kube"
)

// countsRoll reports whether a patch counts a roll on the workload.
func countsRoll(request k8stesting.PatchActionImpl) bool {
	return bytes.Contains(request.Patch, []byte("keyturn.dev~1rolls"))
}

// An admission policy that knows nothing of the count may still be there, from before an update.
func TestARollThatMayNotBeCountedIsMadeWithoutTheCount(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = 2
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.start()
		s.pass(time.Minute)
		s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
			if countsRoll(request) {
				return true, nil, apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("denied by a policy"))
			}
			if _, err := s.apply(request); err != nil {
				return true, nil, err
			}
			// The answer has a later state than the watch shows. Otherwise the count in memory is lost whenever the watch is faster.
			answer := s.object("web")
			metaOf(answer).SetResourceVersion(s.nextVersion())
			return true, answer, nil
		})
		for _, password := range []string{"two", "three"} {
			s.set("secret/db", "password", password)
			s.pass(20 * time.Second)
			s.wantRolls("web")
			s.wantTold("web started content-changed", "web completed rolled-out")
		}
		if got := s.annotation("web", "keyturn.dev/rolls"); got != "" {
			s.Errorf("the workload counts %q", got)
		}
		s.set("secret/db", "password", "four")
		s.pass(20 * time.Second)
		s.wantRolls() // The rolls count while this leader lasts.
		s.wantTold("web held rolled-too-often")
		if got := s.logged("refuses the annotation keyturn.dev/rolls"); got != 1 {
			s.Errorf("it is said %d times, want once", got)
		}
	})
}

// With a policy that refuses every count, the answer to the patch without the count is what matters.
func TestARollThatFailsWithoutTheCountIsNoDenialUnlessThatIsDenied(t *testing.T) {
	deployments := appsv1.Resource("deployments")
	for _, tt := range []struct {
		name string
		then error
		// denied says that the roll is given up.
		denied bool
	}{
		{"a conflict", apierrors.NewConflict(deployments, "web", errors.New("again")), false},
		{"no longer as tested", kube.NotApplied(), false},
		{"too many requests", apierrors.NewTooManyRequests("slowly", 1), false},
		{"an error of the server", apierrors.NewInternalError(errors.New("etcd")), false},
		{"the time is over", context.DeadlineExceeded, false},
		{"denied", apierrors.NewForbidden(deployments, "web", errors.New("all is denied")), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.observe("secret/db")
				s.start()
				s.pass(time.Minute)
				allow := s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
					if countsRoll(request) {
						return true, nil, apierrors.NewForbidden(deployments, "web", errors.New("the count is denied"))
					}
					return true, nil, tt.then
				})
				s.set("secret/db", "password", "two")
				s.pass(10 * time.Minute)
				if tt.denied {
					s.wantTold("web failed patch-denied")
					s.wantLast("web", "failed patch-denied", "the count is denied")
					return
				}
				s.wantTold()
				allow()
				s.pass(70 * time.Second)
				s.wantRolls("web")
				s.wantTold("web started content-changed", "web completed rolled-out")
			})
		})
	}
}

// A policy may allow dry runs, and refuse only what has an effect.
func TestAJobIsStartedOnceThoughTheCountIsRefused(t *testing.T) {
	for name, counts := range map[string]bool{"only in effect": true, "also in a dry run": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.options.StartCronJobs = true
				s.workload("cronjob/import", auto, reads("secret/db"))
				s.change("cronjob/import", func(object runtime.Object) {
					if cronJob, ok := object.(*batchv1.CronJob); ok {
						cronJob.Spec.Suspend = new(false) // The API server sets it.
					}
				})
				s.observe("secret/db")
				s.start()
				s.honorDryRuns()
				s.onPatch(func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
					if dry := len(request.PatchOptions.DryRun) > 0; !dry || countsRoll(request) && !counts {
						return true, nil, apierrors.NewForbidden(batchv1.Resource("cronjobs"), "import", errors.New("denied by a policy"))
					}
					return false, nil, nil
				})
				s.pass(time.Minute)
				s.set("secret/db", "password", "two")
				s.pass(time.Hour)
				s.wantTold("cronjob/import started content-changed", "cronjob/import completed rolled-out")
				if got := len(s.requests("create", "jobs")); got != 1 {
					s.Errorf("Jobs are created %d times, want once", got)
				}
			})
		})
	}
}
