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
)

func TestAnActuatorThatMayNotPatchTriesUntilItMay(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
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

func TestAnActuatorSaysWhichRightIsMissing(t *testing.T) {
	const want = "no permission to list and watch cronjobs in namespace shop; grant it as in deploy/base/rbac.yaml: "
	play(t, func(s *scene) {
		var granted atomic.Bool
		s.options.Namespaces = []string{namespace}
		s.beginWeb().stop() // Without a record it could not know what changes before it knows the workloads.
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
