//go:build !race

package actuate_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAnActuatorRollsWhatDependsOnAChangeAndFollowsIt(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("other", auto, reads("secret/else"))
		s.begin("secret/db", "secret/else")
		s.stall("web")
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantRolls("web")
		s.wantTold("web started content-changed")
		if got := s.podAnnotation("web", events.AnnotationCause); got != "secret/db (password)" {
			s.Errorf("the cause is %q", got)
		}
		s.restart() // Another one goes on where the first one has stopped.
		s.finish("web")
		s.pass(time.Minute)
		s.wantTold("web completed rolled-out")
		s.stall("web")
		s.set("secret/db", "password", "three")
		s.settle()
		s.wantRolls("web")
		s.fail("web")
		s.pass(time.Minute)
		s.wantTold("web started content-changed", "web failed deadline-exceeded")
		s.wantRolls()
	})
}

func TestAnActuatorHoldsBackWhatMustWaitForAPlace(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollouts = 1
		s.workload("one", auto, reads("secret/one"))
		s.workload("two", auto, reads("secret/two"))
		s.begin("secret/one", "secret/two")
		s.stall("one")
		s.set("secret/one", "password", "two")
		s.settle()
		s.wantRolls("one")
		s.set("secret/two", "password", "two")
		s.pass(10 * time.Minute)
		s.wantRolls()
		s.wantTold("one started content-changed", "two held limit-reached")
		s.finish("one")
		s.pass(time.Second)
		s.wantRolls("two")
		s.wantTold("one completed rolled-out", "two started content-changed", "two completed rolled-out")
	})
}

func TestAnActuatorHoldsBackWhatMustWaitForALowerWaveUntilThatIsWell(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("one", auto, annotated("keyturn.dev/wave", "-1"), reads("secret/db"))
		s.workload("two", auto, reads("secret/db"))
		s.begin("secret/db")
		s.stall("one")
		s.set("secret/db", "password", "two")
		s.pass(10 * time.Minute)
		s.wantRolls("one")
		s.wantTold("one started content-changed", "two held lower-wave")
		s.finish("one")
		s.pass(time.Second)
		s.wantRolls("two")
		s.wantTold("one completed rolled-out", "two started content-changed", "two completed rolled-out")

		s.stall("one")
		s.set("secret/db", "password", "three")
		s.settle()
		s.wantRolls("one")
		s.fail("one")
		s.pass(10 * time.Minute)
		s.wantRolls()
		s.wantTold("one started content-changed", "one failed deadline-exceeded", "two held lower-wave", "two held peer-failed")
		s.finish("one")
		s.pass(time.Second)
		s.wantRolls("two")
		s.wantTold("two started content-changed", "two completed rolled-out")
	})
}

func TestAnActuatorThatMayNotPatchTriesUntilItMay(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.begin("secret/db")
		s.refuse("web", apierrors.NewForbidden(appsv1.Resource("deployments"), "web",
			errors.New(`User "x" cannot patch resource "deployments" in API group "apps"`)))
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		if s.logged("patch failed; retrying") == 0 {
			s.Error("it does not say so")
		}
		s.wantTold()
		s.refuse("web", nil)
		s.pass(70 * time.Second)
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestADryRunPatchesNothingAndLeavesItToBeDone(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		first := s.begin("secret/db")
		s.wantWrites("web recorded")
		first.stop()
		s.options.DryRun = true
		dry := s.start()
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		s.wantTold("web skipped dry-run")
		s.wantNothing()
		dry.stop()
		s.options.DryRun = false
		s.start()
		s.pass(time.Minute)
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestAnElectedActuatorLeadsAndGivesItsLeaseBack(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		leader := startAs(s, "me")
		s.pass(time.Minute)
		if got := s.holder(); got != "me" {
			s.Errorf("the Lease is held by %q", got)
		}
		s.set("secret/db", "password", "two")
		s.settle()
		s.wantRolls("web")
		leader.stop()
		if got := s.holder(); got != "" {
			s.Errorf("the Lease is held by %q", got)
		}
	})
}

func TestAnActuatorSaysWhichRightIsMissing(t *testing.T) {
	const want = "no permission to list and watch cronjobs in namespace shop; grant it as in deploy/base/rbac.yaml: "
	play(t, func(s *scene) {
		var granted atomic.Bool
		s.options.Namespaces = []string{namespace}
		s.workload("web", auto, reads("secret/db"))
		s.begin("secret/db").stop() // Without a record it could not know what changes before it knows the workloads.
		s.wantWrites("web recorded")
		actuator := s.startAfter(func(client *fake.Clientset) {
			client.PrependReactor("list", "cronjobs", func(k8stesting.Action) (bool, runtime.Object, error) {
				return !granted.Load(), nil, apierrors.NewForbidden(batchv1.Resource("cronjobs"), "", errors.New("no"))
			})
		})
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		if err := actuator.Ready(); err == nil || !strings.Contains(err.Error(), want) || !apierrors.IsForbidden(err) {
			s.Errorf("its readiness is %v, want what is missing", err)
		}
		s.wantWrites()
		granted.Store(true)
		s.pass(2 * time.Minute)
		if err := actuator.Ready(); err != nil {
			s.Errorf("with the permission it is not ready: %v", err)
		}
		s.wantRolls("web")
	})
}
